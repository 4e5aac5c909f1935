import { addToGroup } from '../../../core/groups.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import { uuidBytesLength } from '../../../core/uuid.ts';
import type { Environment } from '../environment/environment.ts';
import type { Table } from '../environment/stored-tables.ts';
import { deadDeviceAt, readDevice, readSplitDevice, sequenceBytes, tagDigestBytes } from '../layout/keys.ts';
import type { tableNames } from '../layout/tables.ts';

/** Counts and bytes of mail belong to fleets, and are counted again after moving devices. */
type DeviceTable = Exclude<
  (typeof tableNames)[number],
  'log' | 'logIndex' | 'times' | 'counts' | 'fleetMail'
>;

const at =
  (offset: number) =>
  (key: Buffer): DeviceKey =>
    readDevice(key, offset);

/**
 * The tables with devices, and how to find the device in their keys (keys.ts). A move needs no more, since it copies
 * records unchanged.
 */
const deviceIn: Readonly<Record<DeviceTable, (key: Buffer) => DeviceKey>> = {
  devices: at(0),
  tags: at(tagDigestBytes),
  names: readSplitDevice,
  seen: readSplitDevice,
  retiring: at(sequenceBytes),
  activity: at(0),
  mailboxes: at(0),
  waiting: readSplitDevice,
  mail: at(0),
  requeued: at(0),
  expiry: at(sequenceBytes),
  delayed: at(0),
  due: at(sequenceBytes),
  replaceable: at(0),
  receipts: at(uuidBytesLength),
  replies: at(uuidBytesLength),
  dead: at(deadDeviceAt),
  queues: at(0),
  idempotency: at(uuidBytesLength),
  sent: at(uuidBytesLength),
  broadcast: at(uuidBytesLength),
};
const deviceTables = Object.entries(deviceIn) as [DeviceTable, (key: Buffer) => DeviceKey][];

/** Keys scanned per step, each with one transaction per target. */
const keysPerStep = 20_000;

/** The result of one step. */
export interface Step {
  /** Records scanned. */
  passed: number;
  /** Devices copied or removed. */
  devices: number;
}

export interface DevicesSize {
  records: number;
  bytes: number;
}

/** The size of a shard without its log. */
export function sizeOfDevices(environment: Environment): DevicesSize {
  const sizes = deviceTables.map(([table]) => environment.sizeOf(table));
  return {
    records: sizes.reduce((sum, { records }) => sum + records, 0),
    bytes: sizes.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

/**
 * Copies all records of devices for which `targetOf` names another environment, step by step in key order. Idempotent
 * as a whole or in part: the keys are the same on both sides.
 */
export function* copyDevices(
  source: Environment,
  targetOf: (device: DeviceKey) => Environment | undefined,
): Generator<Step> {
  for (const [name, deviceOf] of deviceTables) {
    const table = source.table(name);
    for (const { passed, groups } of groupKeys(table, deviceOf, targetOf)) {
      let devices = 0;
      for (const [target, keys] of groups) {
        const copy = target.table(name);
        // The value is a view valid until the next read: it is put before that, and so copied only once.
        target.writeSync(() => {
          for (const key of keys) copy.putSync(key, table.getBinaryFast(key) as Buffer);
        });
        if (name === 'devices') devices += keys.length;
      }
      yield { passed, devices };
    }
  }
}

/** Removes all records of the devices that `isRemoved` selects, step by step. Idempotent. */
export function* removeDevices(
  environment: Environment,
  isRemoved: (device: DeviceKey) => boolean,
): Generator<Step> {
  const targetOf = (device: DeviceKey): 'removed' | undefined => (isRemoved(device) ? 'removed' : undefined);
  for (const [name, deviceOf] of deviceTables) {
    const table = environment.table(name);
    for (const { passed, groups } of groupKeys(table, deviceOf, targetOf)) {
      const keys = groups.get('removed') ?? [];
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
 * Yields the keys of a table, some thousands at a time, grouped by target; without those that stay. Reads keys only:
 * no value of a staying record.
 */
function* groupKeys<P>(
  table: Table,
  deviceOf: (key: Buffer) => DeviceKey,
  targetOf: (device: DeviceKey) => P | undefined,
): Generator<{ passed: number; groups: Map<P, Buffer[]> }> {
  let last: Buffer | undefined;
  let device: DeviceKey | undefined;
  let target: P | undefined;
  for (;;) {
    const groups = new Map<P, Buffer[]>();
    let passed = 0;
    const from = last === undefined ? {} : { start: last, exclusiveStart: true };
    for (const key of table.getKeys({ ...from, limit: keysPerStep })) {
      passed += 1;
      last = key;
      // Resolved once for adjacent records of a device.
      const owner = deviceOf(key);
      if (owner !== device) {
        device = owner;
        target = targetOf(owner);
      }
      if (target !== undefined) addToGroup(groups, target, key);
    }
    if (passed === 0) return;
    yield { passed, groups };
  }
}
