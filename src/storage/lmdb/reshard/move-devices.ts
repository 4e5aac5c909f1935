import type { DeviceKey } from '../../../core/identity.ts';
import { uuidBytesLength } from '../../../core/uuid.ts';
import type { Environment } from '../environment/environment.ts';
import type { Table } from '../environment/stored-tables.ts';
import { deadDeviceAt, readDevice, readSplitDevice, sequenceBytes, tagDigestBytes } from '../layout/keys.ts';
import type { tableNames } from '../layout/tables.ts';

/** Counts belong to fleets: whoever moves devices counts them anew. */
type DeviceTable = Exclude<(typeof tableNames)[number], 'log' | 'times' | 'counts'>;

const at =
  (offset: number) =>
  (key: Buffer): DeviceKey =>
    readDevice(key, offset);

/**
 * Every table of devices, and where in its keys the device stands (keys.ts): all that a move needs to know
 * of their records, which it copies as they are.
 */
const deviceIn: Readonly<Record<DeviceTable, (key: Buffer) => DeviceKey>> = {
  devices: at(0),
  tags: at(tagDigestBytes),
  names: readSplitDevice,
  seen: readSplitDevice,
  retiring: at(sequenceBytes),
  activity: at(0),
  mailboxes: at(0),
  mail: at(0),
  requeued: at(0),
  expiry: at(sequenceBytes),
  delayed: at(0),
  due: at(sequenceBytes),
  receipts: at(uuidBytesLength),
  dead: at(deadDeviceAt),
  idempotency: at(uuidBytesLength),
  sent: at(uuidBytesLength),
  broadcast: at(uuidBytesLength),
};
const deviceTables = Object.entries(deviceIn) as [DeviceTable, (key: Buffer) => DeviceKey][];

/** Keys that are looked at between two looks at whether to stop; what they lead to is one transaction. */
const keysPerStep = 20_000;

/** What one step of a move has done. */
export interface Step {
  /** Records looked at. */
  passed: number;
  /** Devices taken along or removed. */
  devices: number;
}

export interface DevicesSize {
  records: number;
  bytes: number;
}

/** All that a shard holds but its log. */
export function sizeOfDevices(environment: Environment): DevicesSize {
  const sizes = deviceTables.map(([table]) => environment.sizeOf(table));
  return {
    records: sizes.reduce((sum, { records }) => sum + records, 0),
    bytes: sizes.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

/**
 * Copies everything of the devices that `placeOf` places elsewhere, in the order of the keys, a step at a
 * time. To do it again, or only the rest of it, changes nothing: the keys are the same on both sides.
 */
export function* copyDevices(
  source: Environment,
  placeOf: (device: DeviceKey) => Environment | undefined,
): Generator<Step> {
  for (const [name, deviceOf] of deviceTables) {
    const table = source.table(name);
    for (const { passed, groups } of groupKeys(table, deviceOf, placeOf)) {
      let devices = 0;
      for (const [target, keys] of groups) {
        const copy = target.table(name);
        // The value is a view, good until the next read: put before it, and so never copied in between.
        target.writeSync(() => {
          for (const key of keys) copy.putSync(key, table.getBinaryFast(key) as Buffer);
        });
        if (name === 'devices') devices += keys.length;
      }
      yield { passed, devices };
    }
  }
}

/** Removes everything of the devices that `isGone` names, a step at a time. To do it again changes nothing. */
export function* removeDevices(
  environment: Environment,
  isGone: (device: DeviceKey) => boolean,
): Generator<Step> {
  const placeOf = (device: DeviceKey): 'gone' | undefined => (isGone(device) ? 'gone' : undefined);
  for (const [name, deviceOf] of deviceTables) {
    const table = environment.table(name);
    for (const { passed, groups } of groupKeys(table, deviceOf, placeOf)) {
      const keys = groups.get('gone') ?? [];
      if (keys.length > 0) {
        environment.writeSync(() => {
          for (const key of keys) table.removeSync(key);
        });
      }
      yield { passed, devices: name === 'devices' ? keys.length : 0 };
    }
  }
}

/**
 * The keys of a table, some thousands at a time, by where their devices belong; without those that stay. Keys
 * alone: of what stays, no value is read.
 */
function* groupKeys<P>(
  table: Table,
  deviceOf: (key: Buffer) => DeviceKey,
  placeOf: (device: DeviceKey) => P | undefined,
): Generator<{ passed: number; groups: Map<P, Buffer[]> }> {
  let last: Buffer | undefined;
  let device: DeviceKey | undefined;
  let place: P | undefined;
  for (;;) {
    const groups = new Map<P, Buffer[]>();
    let passed = 0;
    const from = last === undefined ? {} : { start: last, exclusiveStart: true };
    for (const key of table.getKeys({ ...from, limit: keysPerStep })) {
      passed += 1;
      last = key;
      // Asked once for the records of a device that lie together.
      const owner = deviceOf(key);
      if (owner !== device) {
        device = owner;
        place = placeOf(owner);
      }
      if (place === undefined) continue;
      const group = groups.get(place);
      if (group === undefined) groups.set(place, [key]);
      else group.push(key);
    }
    if (passed === 0) return;
    yield { passed, groups };
  }
}
