import type { DeviceKey } from '../../../core/identity.ts';
import type { Table } from '../environment/stored-tables.ts';
import { keyOfName } from '../layout/keys.ts';

const nothing = Buffer.alloc(0);

/**
 * In the transaction that changes the device: the index from the beginning of a name to the devices that have
 * it. A device without a name costs nothing here.
 */
export function changeName(table: Table, device: DeviceKey, before: string, after: string): void {
  if (before === after) return;
  if (before !== '') table.removeSync(keyOfName(device, before));
  if (after !== '') table.putSync(keyOfName(device, after), nothing);
}
