import type { DeviceKey } from '../../../core/identity.ts';
import type { Table } from '../environment/stored-tables.ts';
import { keyOfWaiting } from '../layout/keys.ts';

const nothing = Buffer.alloc(0);

/**
 * Updates the index of mailboxes by the time since which their heads wait, in the transaction that changes the mailbox.
 * Undefined: no mail, and no entry. Entries are added in the order of time, so each costs little: they share a page or two.
 */
export function changeWaiting(
  table: Table,
  device: DeviceKey,
  beforeMs: number | undefined,
  afterMs: number | undefined,
): void {
  if (beforeMs === afterMs) return;
  if (beforeMs !== undefined) table.removeSync(keyOfWaiting(device, beforeMs));
  if (afterMs !== undefined) table.putSync(keyOfWaiting(device, afterMs), nothing);
}
