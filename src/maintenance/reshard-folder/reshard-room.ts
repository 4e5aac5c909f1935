import { statfsSync } from 'node:fs';
import { OperatorError } from '../../core/errors.ts';
import type { DevicesSize } from '../../storage/lmdb/reshard/move-devices.ts';

/** Sizes of one shard of the old layout. */
export interface ShardSize {
  devices: DevicesSize;
  log: DevicesSize;
  logEnd: number;
}

/** Growth: pages filled from several sources are less dense than their sources. */
const growth = 1.3;
/** A transaction writes new pages before it frees the old ones; this is more than one ever writes. */
const transactionBytesMax = 64 * 1024 * 1024;

const mebibytes = (bytes: number): string => `${Math.ceil(bytes / 1024 ** 2).toLocaleString('en-GB')} MiB`;

/**
 * Refuses resharding for which the disk or a shard is too small: before it begins, or it would have to be undone.
 * @throws OperatorError naming what is missing
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
      `Resharding ${path} from ${sizes.length} to ${shards} shards needs ${mebibytes(needed)} of free disk, but only ${mebibytes(bavail * bsize)} are available. Free some space, or start with shards ${sizes.length}.`,
    );
  }
  const largest = Math.max(...sizes.slice(0, shards).map(({ devices, log }) => devices.bytes + log.bytes));
  if (shards < sizes.length && largest + copied / shards > mapBytesMax) {
    throw new OperatorError(
      `With ${shards} shards, a shard of ${path} would hold ${mebibytes(largest + copied / shards)}, more than mapBytesMax. Raise that, or start with shards ${sizes.length}.`,
    );
  }
}

/** When growing, every old shard gives the same share; a removed shard is copied whole. */
function bytesToCopy(sizes: readonly ShardSize[], shards: number): number {
  const share = Math.max(0, (shards - sizes.length) / shards);
  let bytes = 0;
  for (const [shard, { devices, log }] of sizes.entries()) {
    bytes += shard < shards ? devices.bytes * share : devices.bytes + log.bytes;
  }
  return bytes * growth;
}
