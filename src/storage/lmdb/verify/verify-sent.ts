import { type DeviceKey, deviceKeyLength, isDeviceKey } from '../../../core/identity.ts';
import { isUuid, uuidBytesLength } from '../../../core/uuid.ts';
import { readDevice, sentRestBytesMax } from '../layout/keys.ts';
import type { TableWalk } from './walk.ts';

const restAt = uuidBytesLength + deviceKeyLength;

/** What mail was sent for. Neither the mail nor the device need be there any more. */
export function verifySent(walk: TableWalk, isPlaced: (device: DeviceKey) => boolean): void {
  walk('sent', (key, value) => {
    const restBytes = key.length - restAt;
    const isKey = isUuid(key) && restBytes >= 1 && restBytes <= sentRestBytesMax;
    const device = readDevice(key, uuidBytesLength);
    if (!isKey || !isDeviceKey(device) || value.length !== uuidBytesLength || !isUuid(value)) {
      return 'the record does not decode';
    }
    return isPlaced(device) ? undefined : 'its device belongs in another shard';
  });
}

/** Who has had the mail of a broadcast. */
export function verifyBroadcast(walk: TableWalk, isPlaced: (device: DeviceKey) => boolean): void {
  walk('broadcast', (key, value) => {
    const device = readDevice(key, uuidBytesLength);
    if (!isUuid(key) || key.length !== restAt || !isDeviceKey(device) || value.length !== 0) {
      return 'the record does not decode';
    }
    return isPlaced(device) ? undefined : 'its device belongs in another shard';
  });
}
