import { isUtf8 } from 'node:buffer';
import { type DeviceKey, deviceKeyLength, fleetIdLength, isDeviceKey } from '../../../core/identity.ts';
import { uuidBytesLength } from '../../../core/uuid.ts';
import { hasSequence, sequenceFrom } from '../../../domain/mail/mail-sequence.ts';
import { decodeReplaceable, isReplaceableList, isUntouched } from '../../../domain/mail/replaceable-mails.ts';
import type { Findings } from '../../tables/findings.ts';
import type { StoredTable } from '../environment/database-file.ts';
import {
  keyOfDevice,
  keyOfDeviceMail,
  keyOfExpiry,
  keyOfMail,
  keyOfWaiting,
  readDevice,
  readSequence,
  readSplitDevice,
  sequenceBytes,
} from '../layout/keys.ts';
import { decodeMail, isMailRecord, readExpiresAtMs, readPayloadBytes } from '../layout/mail-record.ts';
import { decodeMailbox, isMailboxRecord } from '../layout/mailbox-record.ts';
import type { MailBytesCheck } from './verify-mail-bytes.ts';
import type { TableWalk } from './walk.ts';

/** Counts of one device's mail. */
interface Counted {
  size: number;
  head: number;
  last: number;
}

/**
 * Verifies mail against the mailbox records and against `requeued` and `expiry`, and these against `waiting`, all both
 * ways. Returns the number of mails. Counts are kept per device until its mailbox record: some dozen bytes for each device with mail.
 */
export function verifyMail(
  tables: ReadonlyMap<string, StoredTable>,
  walk: TableWalk,
  exists: (device: string) => boolean,
  findings: Pick<Findings, 'add'>,
  bytes: MailBytesCheck,
): number {
  const counted = new Map<string, Counted>();
  let mails = 0;
  walk('mail', (key, value) => {
    mails += 1;
    if (key.length !== deviceKeyLength + sequenceBytes) return 'this is not the key of a mail';
    const device = readDevice(key, 0);
    const sequence = readSequence(key, deviceKeyLength);
    const count = counted.get(device) ?? { size: 0, head: sequence, last: 0 };
    counted.set(device, { ...count, size: count.size + 1, last: sequence });
    const isRecord = isMailRecord(value);
    bytes.add(device, isRecord ? readPayloadBytes(value) : Number.NaN);
    if (count.size === 0 && !exists(device)) return 'its device does not exist';
    if (!isRecord) return 'the record does not decode';
    const { id, payload, requeueCount, expiresAtMs } = decodeMail(value);
    if (!isObject(payload)) return 'the payload is not a JSON object';
    if (tables.get('expiry')?.get(keyOfExpiry(expiresAtMs, device, id)) === undefined) {
      return 'there is no entry of its expiry';
    }
    if (requeueCount === 0 && hasSequence(id, sequence)) return undefined;
    const moved = tables.get('requeued')?.get(keyOfDeviceMail(device, id));
    return moved?.equals(key.subarray(deviceKeyLength))
      ? undefined
      : 'its id is not of its place, and no entry says where it is';
  });
  walk('mailboxes', (key, value) => {
    const device = key.toString('latin1');
    const count = counted.get(device) ?? { size: 0, head: 0, last: 0 };
    counted.delete(device);
    if (!exists(device)) return 'its device does not exist';
    if (!isMailboxRecord(value)) return 'the record does not decode';
    const { size, head, tail, waitingSinceMs } = decodeMailbox(value);
    if (size !== count.size) return `its size is ${size}, and it has ${count.size} mails`;
    if (size > 0 && head !== count.head) return `its head is ${head}, and its first mail is ${count.head}`;
    if (size > 0 === (waitingSinceMs === undefined))
      return 'since when its head waits does not agree with its size';
    const entry = waitingSinceMs && keyOfWaiting(device as DeviceKey, waitingSinceMs);
    if (entry && tables.get('waiting')?.get(entry) === undefined)
      return 'since when its head waits is not in the index';
    if (tail > count.last && head <= tail) return undefined;
    return `its tail is ${tail}, and its last mail ${count.last}`;
  });
  for (const device of counted.keys()) {
    findings.add(
      `mailboxes: ${isDeviceKey(device) ? device : 'a device'} has mail and no record of its mailbox`,
    );
  }
  verifyWaiting(tables, walk);
  walk('requeued', (key, value) => {
    if (key.length !== deviceKeyLength + uuidBytesLength || value.length !== sequenceBytes) {
      return 'the record does not decode';
    }
    const mail = tables.get('mail')?.get(keyOfMail(readDevice(key, 0), readSequence(value, 0)));
    return mail !== undefined && isOfId(mail, key.subarray(deviceKeyLength))
      ? undefined
      : 'its mail is not there';
  });
  verifyExpiry(tables, walk);
  return mails;
}

/** Verifies when mail expires against it. */
function verifyExpiry(tables: ReadonlyMap<string, StoredTable>, walk: TableWalk): void {
  walk('expiry', (key, value) => {
    if (key.length !== sequenceBytes + deviceKeyLength + uuidBytesLength || value.length !== 0) {
      return 'the record does not decode';
    }
    const mail = find(tables, key.subarray(sequenceBytes));
    if (mail === undefined) return 'its mail is not there';
    return readExpiresAtMs(mail) === readSequence(key, 0) ? undefined : 'its mail expires at another time';
  });
}

/** Verifies that what may be replaced waits, queued or delayed, and was never fetched. */
export function verifyReplaceable(
  tables: ReadonlyMap<string, StoredTable>,
  walk: TableWalk,
  exists: (device: string) => boolean,
): void {
  walk('replaceable', (key, value) => {
    const device = key.toString('latin1');
    if (!exists(device)) return 'its device does not exist';
    if (!isReplaceableList(value)) return 'the record does not decode';
    for (const { mailId } of decodeReplaceable(value)) {
      const place = keyOfDeviceMail(device as DeviceKey, mailId);
      if (tables.get('delayed')?.get(place) !== undefined) continue;
      const mail = find(tables, place);
      if (mail === undefined) return 'one of its mails is not there';
      if (!isUntouched(decodeMail(mail))) return 'one of its mails was fetched';
    }
    return undefined;
  });
}

/** Verifies the index of mailboxes that wait against them. */
function verifyWaiting(tables: ReadonlyMap<string, StoredTable>, walk: TableWalk): void {
  walk('waiting', (key, value) => {
    if (key.length !== deviceKeyLength + sequenceBytes || value.length !== 0) {
      return 'the record does not decode';
    }
    const mailbox = tables.get('mailboxes')?.get(keyOfDevice(readSplitDevice(key)));
    if (mailbox === undefined || !isMailboxRecord(mailbox)) return 'its mailbox is not there';
    return decodeMailbox(mailbox).waitingSinceMs === readSequence(key, fleetIdLength)
      ? undefined
      : 'its mailbox waits since another time';
  });
}

/** Finds a mail as the mailbox does: by its requeued entry, or where its id was accepted. */
function find(tables: ReadonlyMap<string, StoredTable>, deviceAndId: Buffer): Buffer | undefined {
  const device = readDevice(deviceAndId, 0);
  const id = deviceAndId.subarray(deviceKeyLength);
  const moved = tables.get('requeued')?.get(keyOfDeviceMail(device, id));
  const mailbox = tables.get('mailboxes')?.get(keyOfDevice(device));
  if (mailbox === undefined || !isMailboxRecord(mailbox)) return undefined;
  const { head } = decodeMailbox(mailbox);
  const sequence = moved === undefined ? sequenceFrom(head, id) : readSequence(moved, 0);
  const mail = tables.get('mail')?.get(keyOfMail(device, sequence));
  return mail !== undefined && isOfId(mail, id) ? mail : undefined;
}

function isOfId(mail: Buffer, id: Buffer): boolean {
  return isMailRecord(mail) && mail.subarray(0, uuidBytesLength).equals(id);
}

export function isObject(payload: Buffer): boolean {
  if (!isUtf8(payload)) return false;
  const value: unknown = JSON.parse(payload.toString('utf8'));
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
