import type { DeviceKey } from '../../../core/identity.ts';
import { bucketOf } from '../../../domain/devices/seen-bucket.ts';
import type { Table } from '../environment/stored-tables.ts';
import { keyOfSeen } from '../layout/keys.ts';

const nothing = Buffer.alloc(0);

/**
 * Updates the seen index, in the transaction that stores the time. Null: no entry; undefined: never seen, which has
 * one.
 */
export function changeSeen(
  table: Table,
  device: DeviceKey,
  before: number | undefined | null,
  after: number | undefined | null,
): void {
  const oldBucket = before === null ? undefined : bucketOf(before);
  const newBucket = after === null ? undefined : bucketOf(after);
  if (oldBucket === newBucket) return;
  if (oldBucket !== undefined) table.removeSync(keyOfSeen(device, oldBucket));
  if (newBucket !== undefined) table.putSync(keyOfSeen(device, newBucket), nothing);
}
