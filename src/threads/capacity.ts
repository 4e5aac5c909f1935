import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../core/telemetry/log.ts';
import type { ThreadConfig } from './config.ts';

/** Spare files for connections of the admin API, files opened for a while, and connections on their way to a worker. */
const spareFiles = 256;

/**
 * Connections that may be open: at most what the limit of open files leaves beside those open now. At that limit
 * nothing could be accepted, not even to be refused, and the acceptor would retry without end.
 */
export function connectionCapacity(connectionsMax: number): number {
  let limits: string;
  let openFiles: number;
  try {
    limits = readFileSync('/proc/self/limits', 'latin1');
    openFiles = readdirSync('/proc/self/fd').length;
  } catch {
    // Without /proc the limit is unknown.
    return connectionsMax;
  }
  // Node raises the soft limit to the hard one when it starts; "unlimited" is no number.
  const filesMax = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
  return Math.max(1, Math.min(connectionsMax, filesMax - openFiles - spareFiles));
}

/** Block size of `stat`, whatever the file system's own is. */
const blockBytes = 512;
/** Share of the capacity; the rest is for devices, mail, and what arrives between two passes over the log. */
const logShare = 1 / 2;

/**
 * Default size of the ingest log (`logBytesMax` 0): half of what the shards occupy on disk and could still get. Their
 * files never shrink but are reused, so it stays about the same from start to start.
 */
export function logCapacity(
  shardFolders: readonly string[],
  { data, mapBytesMax, settings }: Pick<ThreadConfig, 'data' | 'mapBytesMax' | 'settings'>,
  log: Log,
): number {
  const { bavail, bsize } = statfsSync(data);
  let bytes = bavail * bsize;
  for (const folder of shardFolders) {
    const file = statSync(join(folder, 'data.mdb'), { throwIfNoEntry: false });
    bytes += (file?.blocks ?? 0) * blockBytes;
  }
  const bytesMax = Math.floor(Math.min(bytes, mapBytesMax * shardFolders.length) * logShare);
  if (settings.current.logBytesMax === 0 && bytesMax > 0) {
    log.info({ bytes: bytesMax }, 'ingest log limited to half of the available disk (logBytesMax)');
  }
  return bytesMax;
}
