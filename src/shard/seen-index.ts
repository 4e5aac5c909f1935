import type { DeviceKey } from '../core/identity.ts';
import type { Table } from '../store/environment.ts';
import { keyOfSeen } from './keys.ts';

/**
 * How finely the index knows when a device was seen; the exact time is in its activity record. A device that is
 * seen again within the same ten minutes costs the index nothing.
 */
const bucketMs = 600_000;
const bucketMax = 0xffff_fffe;
/** Of devices that were never seen: each device has its entry. */
const neverBucket = 0;
const nothing = Buffer.alloc(0);

export function bucketOf(lastSeenMs: number | undefined): number {
  if (lastSeenMs === undefined) return neverBucket;
  return Math.min(Math.max(Math.floor(lastSeenMs / bucketMs), neverBucket + 1), bucketMax);
}

/** In the transaction that notes it. Undefined as `before` of a device that had no entry at all: null. */
export function changeSeen(
  table: Table,
  device: DeviceKey,
  before: number | undefined | null,
  after: number | undefined | null,
): void {
  const gone = before === null ? undefined : bucketOf(before);
  const come = after === null ? undefined : bucketOf(after);
  if (gone === come) return;
  if (gone !== undefined) table.removeSync(keyOfSeen(device, gone));
  if (come !== undefined) table.putSync(keyOfSeen(device, come), nothing);
}
