import type { DeviceKey } from '../../../core/identity.ts';
import { bucketOf } from '../../../domain/devices/seen-bucket.ts';
import type { Table } from '../environment/stored-tables.ts';
import { keyOfSeen } from '../layout/keys.ts';

const nothing = Buffer.alloc(0);

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
