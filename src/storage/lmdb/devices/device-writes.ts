import type { DeviceKey } from '../../../core/identity.ts';
import type {
  ChangeOutcome,
  Device,
  DeviceChange,
  DevicePut,
  PutOutcome,
} from '../../../domain/devices/device.ts';
import { decideChange, withoutOldSecret } from '../../../domain/devices/device-change.ts';
import type { Effects } from '../../../domain/write.ts';
import { decodeSeen } from '../layout/activity-record.ts';
import { decodeDevice, encodeDevice } from '../layout/device-record.ts';
import { keyOfDevice, keyOfRetiring, readDevice, sequenceBytes, sequenceKey } from '../layout/keys.ts';
import type { Tables } from '../layout/tables.ts';
import { changeIndexes, indexedOf } from './device-index.ts';
import { changeSeen } from './seen-index.ts';

const nothing = Buffer.alloc(0);

/** Writes a shard's devices, inside its owner's transaction. */
export class DeviceWrites {
  readonly #tables: Tables;
  /** The effects of the current transaction. */
  readonly #effects: () => Effects;

  constructor(tables: Tables, effects: () => Effects) {
    this.#tables = tables;
    this.#effects = effects;
  }

  create(devices: readonly Device[]): DeviceKey | undefined {
    const keys = new Set<DeviceKey>();
    for (const { device } of devices) {
      if (keys.has(device) || this.#tables.devices.doesExist(keyOfDevice(device))) return device;
      keys.add(device);
    }
    for (const device of devices) this.#insert(device);
    return undefined;
  }

  put({ device, change }: DevicePut): PutOutcome {
    const bytes = this.#tables.devices.getBinary(keyOfDevice(device.device));
    if (bytes === undefined) {
      this.#insert(device);
      return 'created';
    }
    return change === undefined ? 'exists' : this.change(device.device, change);
  }

  change(device: DeviceKey, change: DeviceChange): ChangeOutcome {
    const bytes = this.#tables.devices.getBinary(keyOfDevice(device));
    if (bytes === undefined) return 'not_found';
    const before = decodeDevice(device, bytes);
    const decision = decideChange(before, change);
    if (decision.result !== 'changed') return decision.result;
    const { after, streams } = decision;
    this.#effects().changed.push(device);
    changeIndexes(this.#tables, device, before, after);
    this.#retireAt(device, before.oldSecretUntilMs, after.oldSecretUntilMs);
    this.#tables.devices.putSync(keyOfDevice(device), encodeDevice(after));
    if (streams !== undefined) this.#effects()[streams].push(device);
    return 'changed';
  }

  delete(device: DeviceKey): boolean {
    const bytes = this.#tables.devices.getBinary(keyOfDevice(device));
    if (bytes === undefined) return false;
    this.#effects().changed.push(device);
    changeIndexes(this.#tables, device, indexedOf(bytes), undefined);
    const seen = this.#tables.activity.getBinary(keyOfDevice(device));
    changeSeen(this.#tables.seen, device, seen && decodeSeen(seen).lastSeenMs, null);
    this.#tables.activity.removeSync(keyOfDevice(device));
    this.#tables.queues.removeSync(keyOfDevice(device));
    this.#retireAt(device, decodedDevice(device, bytes)?.oldSecretUntilMs, undefined);
    this.#tables.devices.removeSync(keyOfDevice(device));
    this.#effects().endedStreams.push(device);
    return true;
  }

  /** Removes expired old secrets, at most `max`. Returns the number of due entries. */
  retireSecrets(nowMs: number, max: number): number {
    const due = [...this.#tables.retiring.getKeys({ end: sequenceKey(nowMs), limit: max })];
    for (const key of due) {
      const device = readDevice(key, sequenceBytes);
      this.#tables.retiring.removeSync(key);
      const bytes = this.#tables.devices.getBinary(keyOfDevice(device));
      if (bytes === undefined) continue;
      const before = decodedDevice(device, bytes);
      // Leave a damaged record, so that it does not block the others.
      if (before === undefined) continue;
      this.#tables.devices.putSync(keyOfDevice(device), encodeDevice(withoutOldSecret(before)));
      this.#effects().changed.push(device);
      // Streams opened with the new secret go on.
      this.#effects().recheckedStreams.push(device);
    }
    return due.length;
  }

  #insert(device: Device): void {
    this.#effects().changed.push(device.device);
    this.#tables.devices.putSync(keyOfDevice(device.device), encodeDevice(device));
    changeIndexes(this.#tables, device.device, undefined, device);
    changeSeen(this.#tables.seen, device.device, null, undefined);
  }

  #retireAt(device: DeviceKey, before: number | undefined, after: number | undefined): void {
    if (before === after) return;
    if (before !== undefined) this.#tables.retiring.removeSync(keyOfRetiring(before, device));
    if (after !== undefined) this.#tables.retiring.putSync(keyOfRetiring(after, device), nothing);
  }
}

/** Undefined for a damaged record. */
function decodedDevice(device: DeviceKey, bytes: Buffer): Device | undefined {
  try {
    return decodeDevice(device, bytes);
  } catch {
    return undefined;
  }
}
