import { type DeviceKey, deviceKeyLength, isDeviceKey } from '../core/identity.ts';
import type { StoredTable } from '../store/database-file.ts';
import { decodeTags } from './device-record.ts';
import { keyOfDevice, keyOfTag, readDevice, tagDigestBytes } from './keys.ts';
import { digestOfTag, tagsOf } from './tag-index.ts';
import type { Walk } from './verify.ts';

type StoredTables = ReadonlyMap<string, StoredTable>;

/** Whether the index names the device under each of its tags. */
export function hasIndexEntries(tables: StoredTables, device: DeviceKey, record: Buffer): boolean {
  return decodeTags(record).every(
    (tag) => tables.get('tags')?.get(keyOfTag(digestOfTag(tag), device)) !== undefined,
  );
}

/** The other way: whether the devices that the index names have the tags. */
export function verifyTagIndex(tables: StoredTables, walk: Walk): void {
  walk('tags', (key, value) => {
    const device = readDevice(key, tagDigestBytes);
    if (key.length !== tagDigestBytes + deviceKeyLength || value.length !== 0 || !isDeviceKey(device)) {
      return 'the record does not decode';
    }
    const record = tables.get('devices')?.get(keyOfDevice(device));
    if (record === undefined) return 'its device does not exist';
    const digest = key.toString('latin1', 0, tagDigestBytes);
    return tagsOf(record).some((tag) => digestOfTag(tag) === digest)
      ? undefined
      : 'its device does not have the tag';
  });
}
