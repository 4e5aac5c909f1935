import { type DeviceKey, deviceKeyLength, fleetIdOf, isDeviceKey } from '../../../core/identity.ts';
import type { FleetCounts } from '../../../domain/devices/device.ts';
import { bucketOf } from '../../../domain/devices/seen-bucket.ts';
import { decodeCounts, indexedOf } from '../devices/device-index.ts';
import { digestsOf } from '../devices/tag-index.ts';
import type { StoredTable } from '../environment/database-file.ts';
import { decodeSeen } from '../layout/activity-record.ts';
import { decodeCredentials, decodeIndexed } from '../layout/device-record.ts';
import {
  keyOfDevice,
  keyOfName,
  keyOfRetiring,
  keyOfSeen,
  keyOfTag,
  readDevice,
  readSequence,
  readSplitDevice,
  sequenceBytes,
  tagDigestBytes,
} from '../layout/keys.ts';
import type { TableWalk } from './walk.ts';

type StoredTables = ReadonlyMap<string, StoredTable>;

function seenBucket(tables: StoredTables, device: DeviceKey): number {
  const seen = tables.get('activity')?.get(keyOfDevice(device));
  return bucketOf(seen && decodeSeen(seen).lastSeenMs);
}

/** Checks the indexes of devices and the counts of fleets against the devices. */
export class DeviceIndexCheck {
  readonly #tables: StoredTables;
  readonly #counts = new Map<string, FleetCounts>();

  constructor(tables: StoredTables) {
    this.#tables = tables;
  }

  /** Returns what is missing for a device, if anything. Call it for each. */
  check(device: DeviceKey, record: Buffer): string | undefined {
    const indexed = decodeIndexed(record);
    const { oldSecretUntilMs } = decodeCredentials(record);
    const count = this.#counts.get(fleetIdOf(device)) ?? { devices: 0, disabled: 0 };
    count.devices += 1;
    if (!indexed.enabled) count.disabled += 1;
    this.#counts.set(fleetIdOf(device), count);
    const has = (table: string, key: Buffer): boolean => this.#tables.get(table)?.get(key) !== undefined;
    if (![...digestsOf(indexed)].every((digest) => has('tags', keyOfTag(digest, device)))) {
      return 'a tag of it is not in the index';
    }
    if (indexed.name !== '' && !has('names', keyOfName(device, indexed.name))) {
      return 'its name is not in the index';
    }
    if (oldSecretUntilMs !== undefined && !has('retiring', keyOfRetiring(oldSecretUntilMs, device))) {
      return 'the end of its old secret is not noted';
    }
    return has('seen', keyOfSeen(device, seenBucket(this.#tables, device)))
      ? undefined
      : 'when it was seen is not in the index';
  }

  /** Checks the reverse, after all devices: whether index entries agree with them. */
  walk(walk: TableWalk): void {
    const check =
      (
        isShaped: (key: Buffer) => boolean,
        deviceOf: (key: Buffer) => DeviceKey,
        wrong: (key: Buffer, device: DeviceKey, record: Buffer) => string | undefined,
      ) =>
      (key: Buffer, value: Buffer): string | undefined => {
        const device = deviceOf(key);
        if (!isShaped(key) || value.length !== 0 || !isDeviceKey(device)) return 'the record does not decode';
        const record = this.#tables.get('devices')?.get(keyOfDevice(device));
        return record === undefined ? 'its device does not exist' : wrong(key, device, record);
      };
    walk(
      'tags',
      check(
        (key) => key.length === tagDigestBytes + deviceKeyLength,
        (key) => readDevice(key, tagDigestBytes),
        (key, _, record) =>
          digestsOf(indexedOf(record)).has(key.toString('latin1', 0, tagDigestBytes))
            ? undefined
            : 'its device does not have the tag',
      ),
    );
    walk(
      'names',
      check(
        (key) => key.length > deviceKeyLength,
        readSplitDevice,
        (key, device, record) =>
          keyOfName(device, indexedOf(record).name).equals(key) ? undefined : 'its device has another name',
      ),
    );
    walk(
      'seen',
      check(
        (key) => key.length > deviceKeyLength,
        readSplitDevice,
        (key, device) =>
          keyOfSeen(device, seenBucket(this.#tables, device)).equals(key)
            ? undefined
            : 'its device was seen at another time',
      ),
    );
    walk(
      'retiring',
      check(
        (key) => key.length === sequenceBytes + deviceKeyLength,
        (key) => readDevice(key, sequenceBytes),
        (key, _, record) =>
          decodeCredentials(record).oldSecretUntilMs === readSequence(key, 0)
            ? undefined
            : 'its device has no such secret',
      ),
    );
    walk('counts', (key, value) => {
      const fleetId = key.toString('latin1');
      const count = this.#counts.get(fleetId) ?? { devices: 0, disabled: 0 };
      this.#counts.delete(fleetId);
      if (value.length !== 2 * sequenceBytes) return 'the record does not decode';
      const { devices, disabled } = decodeCounts(value);
      return devices === count.devices && disabled === count.disabled
        ? undefined
        : `the fleet has ${count.devices} devices here, ${count.disabled} of them disabled`;
    });
  }

  /** Fleets with devices but without a count; call it after `walk`. */
  get uncounted(): string[] {
    return [...this.#counts.keys()];
  }
}
