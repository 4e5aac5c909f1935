import { statfsSync } from 'node:fs';
import { OperatorError } from '../../core/errors.ts';
import type { DevicesSize } from '../../storage/lmdb/reshard/move-devices.ts';

/** What one shard of the old layout holds. */
export interface ShardSize {
  devices: DevicesSize;
  log: DevicesSize;
  logEnd: number;
}

/** Pages that are filled from several sources are less dense than those they came from. */
const growth = 1.3;
/** A transaction writes its pages beside those that it replaces; this is more than one ever writes. */
const transactionBytesMax = 64 * 1024 * 1024;

const mebibytes = (bytes: number): string => `${Math.ceil(bytes / 1024 ** 2).toLocaleString('en-GB')} MiB`;

/**
 * Refuses a move for which the disk or a shard has no room: before it begins, for it would have to be undone.
 * @throws OperatorError with what is missing.
 */
export function checkRoom(
  path: string,
  sizes: readonly ShardSize[],
  shards: number,
  mapBytesMax: number,
): void {
  const copied = bytesToCopy(sizes, shards);
  const beside = sizes.map(({ devices }) => Math.min(devices.bytes, transactionBytesMax));
  const needed = copied + beside.reduce((sum, bytes) => sum + bytes, 0);
  const { bavail, bsize } = statfsSync(path);
  if (needed > bavail * bsize) {
    throw new OperatorError(
      `Moving ${path} from ${sizes.length} to ${shards} shards needs ${mebibytes(needed)} of free disk, and there are ${mebibytes(bavail * bsize)}: make room, or start with shards ${sizes.length}.`,
    );
  }
  const largest = Math.max(...sizes.slice(0, shards).map(({ devices, log }) => devices.bytes + log.bytes));
  if (shards < sizes.length && largest + copied / shards > mapBytesMax) {
    throw new OperatorError(
      `With ${shards} shards a shard of ${path} would hold ${mebibytes(largest + copied / shards)}, more than mapBytesMax: raise that, or start with shards ${sizes.length}.`,
    );
  }
}

/** Of the old shards the new layout takes its share from all alike; a shard that is given up is copied whole. */
function bytesToCopy(sizes: readonly ShardSize[], shards: number): number {
  const share = Math.max(0, (shards - sizes.length) / shards);
  let bytes = 0;
  for (const [shard, { devices, log }] of sizes.entries()) {
    bytes += shard < shards ? devices.bytes * share : devices.bytes + log.bytes;
  }
  return bytes * growth;
}
