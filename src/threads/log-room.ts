import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../core/telemetry/log.ts';
import type { ThreadConfig } from './config.ts';

/** For the admin API's connections, files that are opened for a while, and connections on their way to a worker. */
const spareFiles = 256;

/**
 * How many connections may be open: at most what the limit of open files leaves beside the files that are open
 * now. At that limit nothing could be accepted, not even to be refused, and the acceptor would try without end.
 */
export function connectionRoom(connectionsMax: number): number {
  let limits: string;
  let openFiles: number;
  try {
    limits = readFileSync('/proc/self/limits', 'latin1');
    openFiles = readdirSync('/proc/self/fd').length;
  } catch {
    // Without /proc there is nothing to go by.
    return connectionsMax;
  }
  // Node has raised the soft limit to the hard one at its start; "unlimited" is no number.
  const filesMax = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
  return Math.max(1, Math.min(connectionsMax, filesMax - openFiles - spareFiles));
}

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
