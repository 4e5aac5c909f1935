import type { DeviceKey } from '../core/identity.ts';
import { uuidBytesLength } from '../core/uuid.ts';
import type { Environment } from '../store/environment.ts';
import { readDevice, sequenceBytes } from './keys.ts';
import type { tableNames } from './tables.ts';

type DeviceTable = Exclude<(typeof tableNames)[number], 'log' | 'times'>;

/**
 * Every table of devices, and where in its keys the device stands (keys.ts): all that a move needs to know
 * of their records, which it copies as they are.
 */
const deviceAt: Readonly<Record<DeviceTable, number>> = {
  devices: 0,
  activity: 0,
  mailboxes: 0,
  mail: 0,
  requeued: 0,
  expiry: sequenceBytes,
  idempotency: uuidBytesLength,
};
const deviceTables = Object.entries(deviceAt) as [DeviceTable, number][];

/** Looked at between two looks at whether to stop, and at most written in one transaction. */
const recordsCopiedMax = 20_000;
/** More than are copied, for only their keys are in memory and each transaction costs an fsync. */
const recordsRemovedMax = 50_000;

/** What one step of a move has done. */
export interface Step {
  /** Records looked at. */
  passed: number;
  /** Devices taken along or removed. */
  devices: number;
}

export interface Size {
  records: number;
  bytes: number;
}

/** All that a shard holds but its log. */
export function sizeOfDevices(environment: Environment): Size {
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
  for (const [name, at] of deviceTables) {
    const table = source.table(name);
    const place = ofSameDevice(placeOf);
    let last: Buffer | undefined;
    for (;;) {
      const entries = [...table.getRange({ ...after(last), limit: recordsCopiedMax })];
      last = entries.at(-1)?.key;
      if (last === undefined) break;
      const moving = new Map<Environment, typeof entries>();
      for (const entry of entries) {
        const target = place(readDevice(entry.key, at));
        if (target === undefined) continue;
        const group = moving.get(target);
        if (group === undefined) moving.set(target, [entry]);
        else group.push(entry);
      }
      let devices = 0;
      for (const [target, group] of moving) {
        const copy = target.table(name);
        target.writeSync(() => {
          for (const { key, value } of group) copy.putSync(key, value);
        });
        if (name === 'devices') devices += group.length;
      }
      yield { passed: entries.length, devices };
    }
  }
}

/** Removes everything of the devices that `isGone` names, a step at a time. To do it again changes nothing. */
export function* removeDevices(
  environment: Environment,
  isGone: (device: DeviceKey) => boolean,
): Generator<Step> {
  for (const [name, at] of deviceTables) {
    const table = environment.table(name);
    const gone = ofSameDevice(isGone);
    let last: Buffer | undefined;
    for (;;) {
      const keys = [...table.getKeys({ ...after(last), limit: recordsRemovedMax })];
      last = keys.at(-1);
      if (last === undefined) break;
      const removed = keys.filter((key) => gone(readDevice(key, at)));
      if (removed.length > 0) {
        environment.writeSync(() => {
          for (const key of removed) table.removeSync(key);
        });
      }
      yield { passed: keys.length, devices: name === 'devices' ? removed.length : 0 };
    }
  }
}

/** From the record behind that key on. */
function after(key: Buffer | undefined): { start?: Buffer; exclusiveStart?: true } {
  return key === undefined ? {} : { start: key, exclusiveStart: true };
}

/** Asked once for the records of a device that lie together. */
function ofSameDevice<T>(ask: (device: DeviceKey) => T): (device: DeviceKey) => T {
  let last: DeviceKey | undefined;
  let answer: T;
  return (device) => {
    if (device !== last) {
      last = device;
      answer = ask(device);
    }
    return answer;
  };
}
