import { type DeviceKey, fleetIdOf } from '../../../core/identity.ts';
import type { FleetCounts } from '../../../domain/devices/device.ts';
import { addedCounts } from '../../../domain/devices/device-change.ts';
import type { Environment } from '../environment/environment.ts';
import type { Table } from '../environment/stored-tables.ts';
import { decodeIndexed, type Indexed } from '../layout/device-record.ts';
import { keyOfFleet, readDevice, readSequence, sequenceBytes, tagDigestBytes } from '../layout/keys.ts';
import { openTables, type Tables } from '../layout/tables.ts';
import { changeName } from './name-index.ts';
import { changeTags, disabledDigest } from './tag-index.ts';

export function readCounts(table: Table, fleetId: string): FleetCounts {
  const bytes = table.getBinary(keyOfFleet(fleetId));
  return bytes === undefined ? { devices: 0, disabled: 0 } : decodeCounts(bytes);
}

export function decodeCounts(bytes: Buffer): FleetCounts {
  return { devices: readSequence(bytes, 0), disabled: readSequence(bytes, sequenceBytes) };
}

/** Updates a fleet's counts, in the transaction that changes the devices. A fleet without devices has no record. */
function addCounts(table: Table, fleetId: string, { devices, disabled }: FleetCounts): void {
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

/** Index entries of an absent device: none. */
export const absent: Indexed = { name: '', tags: [], enabled: true };

/** The indexed fields of a record; none of a damaged one, so that its device can still be deleted. */
export function indexedOf(bytes: Buffer): Indexed {
  try {
    return decodeIndexed(bytes);
  } catch {
    return absent;
  }
}

/**
 * Updates a device's indexes and its fleet's counts, in the transaction that creates, changes or deletes it.
 * Undefined stands for an absent device. The seen index is updated by `changeSeen`.
 */
export function changeIndexes(
  tables: Tables,
  device: DeviceKey,
  before: Indexed | undefined,
  after: Indexed | undefined,
): void {
  const [old, current] = [before ?? absent, after ?? absent];
  changeTags(tables.tags, device, old, current);
  changeName(tables.names, device, old.name, current.name);
  addCounts(tables.counts, fleetIdOf(device), addedCounts(before, after));
}

/** Recounts the devices of each fleet after resharding. Idempotent. */
export function countDevices(environment: Environment): void {
  const { devices, tags, counts } = openTables(environment);
  const found = new Map<string, FleetCounts>();
  for (const key of devices.getKeys({})) {
    const fleetId = fleetIdOf(readDevice(key, 0));
    const count = found.get(fleetId);
    if (count !== undefined) count.devices += 1;
    else found.set(fleetId, { devices: 1, disabled: 0 });
  }
  const start = Buffer.from(disabledDigest, 'latin1');
  const end = Buffer.from(`${disabledDigest}\xff`, 'latin1');
  for (const key of tags.getKeys({ start, end })) {
    const count = found.get(fleetIdOf(readDevice(key, tagDigestBytes)));
    if (count !== undefined) count.disabled += 1;
  }
  environment.writeSync(() => {
    counts.clearSync();
    for (const [fleetId, count] of found) addCounts(counts, fleetId, count);
  });
}
