import type { FleetCounts } from '../../../domain/devices/device.ts';
import type { Table } from '../environment/stored-tables.ts';
import { keyOfFleet, readSequence, sequenceBytes } from '../layout/keys.ts';

export function readCounts(table: Table, fleetId: string): FleetCounts {
  const bytes = table.getBinary(keyOfFleet(fleetId));
  return bytes === undefined ? { devices: 0, disabled: 0 } : decodeCounts(bytes);
}

export function decodeCounts(bytes: Buffer): FleetCounts {
  return { devices: readSequence(bytes, 0), disabled: readSequence(bytes, sequenceBytes) };
}

/** In the transaction that changes the devices. A fleet without devices has no record. */
export function addCounts(table: Table, fleetId: string, { devices, disabled }: FleetCounts): void {
  if (devices === 0 && disabled === 0) return;
  const before = readCounts(table, fleetId);
  const after = Math.max(0, before.devices + devices);
  if (after === 0) {
    table.removeSync(keyOfFleet(fleetId));
    return;
  }
  const bytes = Buffer.alloc(2 * sequenceBytes);
  bytes.writeUIntBE(after, 0, sequenceBytes);
  bytes.writeUIntBE(Math.max(0, before.disabled + disabled), sequenceBytes, sequenceBytes);
  table.putSync(keyOfFleet(fleetId), bytes);
}
