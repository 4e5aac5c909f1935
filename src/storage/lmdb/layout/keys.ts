import {
  type DeviceKey,
  deviceIdLength,
  deviceIdOf,
  deviceKeyLength,
  fleetIdLength,
  fleetIdOf,
} from '../../../core/identity.ts';
import { uuidBytesLength } from '../../../core/uuid.ts';
import { nameInKey } from '../../../domain/devices/device-query.ts';
import { bucketInKey } from '../../../domain/devices/seen-bucket.ts';

/**
 * Keys of a shard's tables: concatenated fixed-width fields, big-endian, so that byte order is the desired order and
 * all records of a device, or of a fleet, are adjacent. LMDB copies a key during the call, so the builders of hot
 * keys each reuse one buffer.
 */
export const sequenceBytes = 6;
export const tagDigestBytes = 8;
export const dedupeRestBytesMax = 32;

const device18 = Buffer.allocUnsafe(deviceKeyLength);
const deviceSequence = Buffer.allocUnsafe(deviceKeyLength + sequenceBytes);
const mailDevice = Buffer.allocUnsafe(uuidBytesLength + deviceKeyLength);
const fleetTimeDevice = Buffer.allocUnsafe(deviceKeyLength + sequenceBytes);
const timeDeviceMail = Buffer.allocUnsafe(sequenceBytes + deviceKeyLength + uuidBytesLength);

/** devices, mailboxes, replaceable, queues, activity: device. */
export function keyOfDevice(device: DeviceKey): Buffer {
  device18.write(device, 0, 'latin1');
  return device18;
}

/** tags: prefix of the tag's digest, device. The value is the mail's id. */
export function keyOfTag(digest: string, device: DeviceKey): Buffer {
  return Buffer.from(digest + device, 'latin1');
}

/** names: fleet, prefix of the name, a zero byte, device id. The value is empty. */
export function keyOfName(device: DeviceKey, name: string): Buffer {
  return Buffer.from(`${fleetIdOf(device)}${nameInKey(name)}\0${deviceIdOf(device)}`, 'latin1');
}

/** seen: fleet, time bucket, device id. The value is empty. */
export function keyOfSeen(device: DeviceKey, bucket: number): Buffer {
  return Buffer.from(fleetIdOf(device) + bucketInKey(bucket) + deviceIdOf(device), 'latin1');
}

/** waiting: fleet, time in milliseconds, device id. The value is empty. */
export function keyOfWaiting(device: DeviceKey, sinceMs: number): Buffer {
  fleetTimeDevice.write(device, 0, 'latin1');
  fleetTimeDevice.copyWithin(fleetIdLength + sequenceBytes, fleetIdLength, deviceKeyLength);
  fleetTimeDevice.writeUIntBE(sinceMs, fleetIdLength, sequenceBytes);
  return fleetTimeDevice;
}

/** retiring: time in milliseconds, device. The value is empty. */
export function keyOfRetiring(untilMs: number, device: DeviceKey): Buffer {
  return Buffer.concat([sequenceKey(untilMs), Buffer.from(device, 'latin1')]);
}

/** counts: fleet. */
export function keyOfFleet(fleetId: string): Buffer {
  return Buffer.from(fleetId, 'latin1');
}

/** The device of a key of `names`, `seen` or `waiting`, with the fleet first and the device id last. */
export function readSplitDevice(key: Buffer): DeviceKey {
  const fleetId = key.toString('latin1', 0, fleetIdLength);
  return (fleetId + key.toString('latin1', key.length - deviceIdLength, key.length)) as DeviceKey;
}

/** mail: device, sequence. */
export function keyOfMail(device: DeviceKey, sequence: number): Buffer {
  deviceSequence.write(device, 0, 'latin1');
  deviceSequence.writeUIntBE(sequence, deviceKeyLength, sequenceBytes);
  return deviceSequence;
}

/** requeued, delayed: device, mail id. */
export function keyOfDeviceMail(device: DeviceKey, mailId: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(device, 'latin1'), mailId]);
}

/** expiry, due: time in milliseconds, device, mail id. The value is empty. */
export function keyOfExpiry(expiresAtMs: number, device: DeviceKey, mailId: Uint8Array): Buffer {
  timeDeviceMail.writeUIntBE(expiresAtMs, 0, sequenceBytes);
  timeDeviceMail.write(device, sequenceBytes, 'latin1');
  timeDeviceMail.set(mailId, sequenceBytes + deviceKeyLength);
  return timeDeviceMail;
}

/** receipts: mail id (so in order of time), device. */
export function keyOfReceipt(mailId: Uint8Array, device: DeviceKey): Buffer {
  mailDevice.set(mailId);
  mailDevice.write(device, uuidBytesLength, 'latin1');
  return mailDevice;
}

export const deadDeviceAt = fleetIdLength + uuidBytesLength;
/** dead: fleet, mail id (so in order of time), device. */
export function keyOfDeadLetter(device: DeviceKey, mailId: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(fleetIdOf(device), 'latin1'), mailId, Buffer.from(device, 'latin1')]);
}

/** sent: the dedupe key's UUIDv7 (so in order of time), device, the rest of the dedupe key. */
export function keyOfDedupe(dedupeKey: Uint8Array, device: DeviceKey): Buffer {
  const rest = dedupeKey.subarray(uuidBytesLength);
  if (rest.length < 1 || rest.length > dedupeRestBytesMax) throw new Error('invalid length of a dedupe key');
  return Buffer.concat([dedupeKey.subarray(0, uuidBytesLength), Buffer.from(device, 'latin1'), rest]);
}

/** broadcast: broadcast id (a UUIDv7, so in order of time), device. The value is empty. */
export function keyOfBroadcast(broadcast: Uint8Array, device: DeviceKey): Buffer {
  return Buffer.concat([broadcast, Buffer.from(device, 'latin1')]);
}

/**
 * times: the names 'clock' (shard-clock.ts), 'forgotten' (idempotency-keys.ts), 'moved' (log-times.ts) and 'trim'
 * (log-trim-state.ts). log: position of the batch's first record. Also a time as a prefix in ranges.
 */
export function sequenceKey(sequence: number): Buffer {
  const key = Buffer.allocUnsafe(sequenceBytes);
  key.writeUIntBE(sequence, 0, sequenceBytes);
  return key;
}

export function readSequence(bytes: Buffer, offset: number): number {
  return bytes.readUIntBE(offset, sequenceBytes);
}

export function readDevice(bytes: Buffer, offset: number): DeviceKey {
  return bytes.toString('latin1', offset, offset + deviceKeyLength) as DeviceKey;
}
