import {
  type DeviceKey,
  deviceKeyLength,
  fleetIdLength,
  fleetIdOf,
  isDeviceKey,
} from '../../../core/identity.ts';
import { isUuid, uuidBytesLength } from '../../../core/uuid.ts';
import type { StoredTable } from '../environment/database-file.ts';
import { isDeadLetterRecord, mailOf } from '../layout/dead-letter-record.ts';
import { decodeDelayed, isDelayedRecord } from '../layout/delayed-record.ts';
import {
  deadDeviceAt,
  dedupeRestBytesMax,
  keyOfDeviceMail,
  keyOfExpiry,
  readDevice,
  readSequence,
  sequenceBytes,
} from '../layout/keys.ts';
import { readPayloadBytes } from '../layout/mail-record.ts';
import { isReceiptRecord } from '../layout/receipt-record.ts';
import { isObject } from './verify-mail.ts';
import type { MailBytesCheck } from './verify-mail-bytes.ts';
import type { TableWalk } from './walk.ts';

const restAt = uuidBytesLength + deviceKeyLength;

/** Verifies dedupe keys. Neither mail nor device need exist any more. */
export function verifyDedupeKeys(walk: TableWalk, belongsHere: (device: DeviceKey) => boolean): void {
  walk('sent', (key, value) => {
    const restBytes = key.length - restAt;
    const isKey = isUuid(key) && restBytes >= 1 && restBytes <= dedupeRestBytesMax;
    const device = readDevice(key, uuidBytesLength);
    if (!isKey || !isDeviceKey(device) || value.length !== uuidBytesLength || !isUuid(value)) {
      return 'the record does not decode';
    }
    return belongsHere(device) ? undefined : 'its device belongs in another shard';
  });
}

/** Verifies which devices got which mail of broadcasts. */
export function verifyBroadcast(walk: TableWalk, belongsHere: (device: DeviceKey) => boolean): void {
  walk('broadcast', (key, value) => {
    const device = readDevice(key, uuidBytesLength);
    const isMark = isUuid(key) && key.length === restAt && value.length === uuidBytesLength && isUuid(value);
    if (!isMark || !isDeviceKey(device)) {
      return 'the record does not decode';
    }
    return belongsHere(device) ? undefined : 'its device belongs in another shard';
  });
}

/** Verifies delayed mail against its schedule, both ways. */
export function verifyDelayed(
  tables: ReadonlyMap<string, StoredTable>,
  walk: TableWalk,
  exists: (device: string) => boolean,
  bytes: MailBytesCheck,
): void {
  walk('delayed', (key, value) => {
    if (key.length !== deviceKeyLength + uuidBytesLength) return 'this is not the key of a mail';
    const device = readDevice(key, 0);
    const delayed = isDelayedRecord(value) ? decodeDelayed(value) : undefined;
    bytes.add(device, delayed === undefined ? Number.NaN : readPayloadBytes(delayed.mail));
    if (delayed === undefined) return 'the record does not decode';
    const id = key.subarray(deviceKeyLength);
    const { mail, deliverAtMs } = delayed;
    if (!exists(device)) return 'its device does not exist';
    if (!mail.subarray(0, uuidBytesLength).equals(id)) return 'its id is another';
    return tables.get('due')?.get(keyOfExpiry(deliverAtMs, device, id)) === undefined
      ? 'there is no entry of its time'
      : undefined;
  });
  walk('due', (key, value) => {
    if (key.length !== sequenceBytes + deviceKeyLength + uuidBytesLength || value.length !== 0) {
      return 'the record does not decode';
    }
    const device = readDevice(key, sequenceBytes);
    const id = key.subarray(sequenceBytes + deviceKeyLength);
    const delayed = tables.get('delayed')?.get(keyOfDeviceMail(device, id));
    if (delayed === undefined || !isDelayedRecord(delayed)) return 'its mail is not there';
    return decodeDelayed(delayed).deliverAtMs === readSequence(key, 0)
      ? undefined
      : 'its mail is to be delivered at another time';
  });
}

/** Verifies receipts with their replies, and dead letters. The device need not exist any more. */
export function verifyEnded(
  tables: ReadonlyMap<string, StoredTable>,
  walk: TableWalk,
  belongsHere: (device: DeviceKey) => boolean,
): void {
  walk('receipts', (key, value) => {
    const device = key.toString('latin1', uuidBytesLength);
    if (!isUuid(key) || !isDeviceKey(device) || !isReceiptRecord(value)) return 'the record does not decode';
    return belongsHere(device) ? undefined : 'its device belongs in another shard';
  });
  walk('replies', (key, value) => {
    if (tables.get('receipts')?.get(key) === undefined) return 'its receipt is not there';
    return isObject(value) ? undefined : 'the reply is not a JSON object';
  });
  walk('dead', (key, value) => {
    const device = key.toString('latin1', deadDeviceAt);
    const id = key.subarray(fleetIdLength, deadDeviceAt);
    if (!isDeviceKey(device) || key.toString('latin1', 0, fleetIdLength) !== fleetIdOf(device)) {
      return 'this is not the key of a dead letter';
    }
    if (!isDeadLetterRecord(value)) return 'the record does not decode';
    const mail = mailOf(value);
    if (!mail.id.equals(id)) return 'its id is another';
    if (!isObject(mail.payload)) return 'the payload is not a JSON object';
    return belongsHere(device) ? undefined : 'its device belongs in another shard';
  });
}
