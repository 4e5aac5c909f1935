import { statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../core/telemetry/log.ts';
import type { ThreadConfig } from './config.ts';

/** Bytes of one block as `stat` counts them, whatever the file system's own are. */
const blockBytes = 512;
/** Of the room that there is; the rest is for devices and mail, and for what comes between two passes over the log. */
const logShare = 1 / 2;

/**
 * What the ingest log may take where nobody has said so (`logBytesMax` 0): half of what the shards have on disk and
 * could have besides. Their files never shrink but are used again, so it stays about the same from start to start.
 */
export function logRoom(
  shardFolders: readonly string[],
  { data, mapBytesMax, logBytesMax }: Pick<ThreadConfig, 'data' | 'mapBytesMax' | 'logBytesMax'>,
  log: Log,
): number {
  const { bavail, bsize } = statfsSync(data);
  let bytes = bavail * bsize;
  for (const folder of shardFolders) {
    const file = statSync(join(folder, 'data.mdb'), { throwIfNoEntry: false });
    bytes += (file?.blocks ?? 0) * blockBytes;
  }
  const room = Math.floor(Math.min(bytes, mapBytesMax * shardFolders.length) * logShare);
  if (logBytesMax === 0 && room > 0) {
    log.info({ bytes: room }, 'the ingest log may take half of the disk that there is for it (logBytesMax)');
  }
  return room;
}
