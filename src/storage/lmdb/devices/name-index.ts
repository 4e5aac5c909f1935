import type { DeviceKey } from '../../../core/identity.ts';
import type { Table } from '../environment/stored-tables.ts';
import { keyOfName } from '../layout/keys.ts';

const nothing = Buffer.alloc(0);

/**
 * Updates the index of name prefixes, in the transaction that changes the device. A device without a name has no
 * entry.
 */
export function changeName(table: Table, device: DeviceKey, before: string, after: string): void {
  if (before === after) return;
  if (before !== '') table.removeSync(keyOfName(device, before));
  if (after !== '') table.putSync(keyOfName(device, after), nothing);
}
