import { type DeviceKey, fleetIdLength } from '../../../core/identity.ts';
import { copyUuid } from '../../../core/uuid.ts';
import { picked } from '../../../domain/fields.ts';
import {
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetterWithPayload,
  isWanted,
  type LetterOrder,
  type Receipt,
} from '../../../domain/mail/ended-mail.ts';
import type { Mail } from '../../../domain/mail/mail.ts';
import { keptFields } from '../../../domain/mail/mail-fields.ts';
import type { Page } from '../../../domain/page.ts';
import { decodeDeadLetter, mailOf } from '../layout/dead-letter-record.ts';
import { decodeDelayed } from '../layout/delayed-record.ts';
import {
  deadDeviceAt,
  keyOfDeadLetter,
  keyOfDevice,
  keyOfDeviceMail,
  keyOfReceipt,
  readDevice,
} from '../layout/keys.ts';
import { decodeHeader, decodeMail } from '../layout/mail-record.ts';
import { decodeMailbox } from '../layout/mailbox-record.ts';
import { decodeReceipt } from '../layout/receipt-record.ts';
import { storedJumpsMs } from '../layout/shard-clock.ts';
import type { Tables } from '../layout/tables.ts';
import { fleetRange } from './dead-letters.ts';
import { type FoundMail, findMail } from './find-mail.ts';

/**
 * Reads the receipt of a mail: from the mail itself while it is queued or delayed, afterwards from the stored
 * receipt.
 */
export function readReceipt(tables: Tables, device: DeviceKey, mailId: Uint8Array): Receipt | undefined {
  const known =
    queued(tables, device, mailId) ?? delayed(tables, device, mailId) ?? ended(tables, device, mailId);
  if (known === undefined) return undefined;
  const jumpsMs = storedJumpsMs(tables.times);
  const toWallMs = (lifeMs: number | undefined): number | undefined =>
    lifeMs === undefined ? undefined : lifeMs + jumpsMs;
  return {
    ...known,
    device,
    mailId: copyUuid(mailId),
    deliverAtMs: toWallMs(known.deliverAtMs),
    queuedAtMs: toWallMs(known.queuedAtMs),
    expiresAtMs: toWallMs(known.expiresAtMs),
    settledAtMs: toWallMs(known.settledAtMs),
  };
}

/** Reads the payload of a mail while it is queued or delayed. @throws Error for a damaged record. */
export function readWaitingPayload(
  tables: Tables,
  device: DeviceKey,
  mailId: Uint8Array,
): Buffer | undefined {
  const found = findQueued(tables, device, mailId);
  if (found !== undefined) return decodeMail(found.bytes).payload;
  const delayed = tables.delayed.getBinaryFast(keyOfDeviceMail(device, mailId));
  return delayed && decodeMail(decodeDelayed(delayed).mail).payload;
}

function findQueued(tables: Tables, device: DeviceKey, mailId: Uint8Array): FoundMail | undefined {
  const mailbox = tables.mailboxes.getBinary(keyOfDevice(device));
  return mailbox && findMail(tables, device, decodeMailbox(mailbox), mailId);
}

/** In shard life time, except for the first fetch. */
type LifeTimeReceipt = Omit<Receipt, 'device' | 'mailId'>;

function queued(tables: Tables, device: DeviceKey, mailId: Uint8Array): LifeTimeReceipt | undefined {
  const found = findQueued(tables, device, mailId);
  return found && waitingReceipt(decodeHeader(found.bytes), 'queued');
}

function delayed(tables: Tables, device: DeviceKey, mailId: Uint8Array): LifeTimeReceipt | undefined {
  const bytes = tables.delayed.getBinaryFast(keyOfDeviceMail(device, mailId));
  if (bytes === undefined) return undefined;
  const { deliverAtMs, mail } = decodeDelayed(bytes);
  return { ...waitingReceipt(decodeHeader(mail), 'delayed'), deliverAtMs };
}

function waitingReceipt(
  { acceptedAtMs, expiresAtMs, ...mail }: Omit<Mail, 'payload'>,
  state: 'queued' | 'delayed',
): LifeTimeReceipt {
  return {
    state,
    reply: undefined,
    deliverAtMs: undefined,
    queuedAtMs: acceptedAtMs || undefined,
    expiresAtMs: expiresAtMs || undefined,
    settledAtMs: undefined,
    ...picked(keptFields, mail),
  };
}

function ended(tables: Tables, device: DeviceKey, mailId: Uint8Array): LifeTimeReceipt | undefined {
  const key = keyOfReceipt(mailId, device);
  const bytes = tables.receipts.getBinaryFast(key);
  return bytes && { ...decodeReceipt(bytes), reply: tables.replies.getBinary(key) };
}

type LetterTables = Pick<Tables, 'dead' | 'times'>;

/** Letters scanned per call: it runs for each shard in turn, on a thread with other work. */
const scanMax = 1_000;

/** A cursor is the rest of the key after the fleet, in hexadecimal. Damaged letters are skipped. */
export function readDeadLetters(
  { dead, times }: LetterTables,
  fleetId: string,
  filter: DeadLetterFilter,
  after: string,
  limit: number,
  order: LetterOrder,
): Page<DeadLetter> {
  const { start, end } = fleetRange(fleetId);
  const last = after === '' ? undefined : Buffer.concat([start, Buffer.from(after, 'hex')]);
  const range =
    order === 'oldest'
      ? { start: last ?? start, end, exclusiveStart: last !== undefined }
      : { start: last ?? end, end: start, exclusiveStart: true, reverse: true };
  const jumpsMs = storedJumpsMs(times);
  const items: DeadLetter[] = [];
  let scanned = 0;
  for (const { key, value } of dead.getRange({ ...range, limit: scanMax })) {
    scanned += 1;
    const letter = attempt(() => describe(key, value, jumpsMs));
    if (letter !== undefined && isWanted(letter, filter)) items.push(letter);
    if (scanned === scanMax || items.length === limit) {
      return { items, next: key.toString('hex', fleetIdLength) };
    }
  }
  return { items, next: null };
}

/** @throws Error for a damaged record. */
export function readDeadLetter(
  { dead, times }: LetterTables,
  device: DeviceKey,
  mailId: Uint8Array,
): DeadLetterWithPayload | undefined {
  const key = keyOfDeadLetter(device, mailId);
  const bytes = dead.getBinary(key);
  if (bytes === undefined) return undefined;
  return { ...describe(key, bytes, storedJumpsMs(times)), payload: mailOf(bytes).payload };
}

function describe(key: Buffer, value: Buffer, jumpsMs: number): DeadLetter {
  const { diedAtMs, queuedAtMs, ...letter } = decodeDeadLetter(value);
  return {
    ...letter,
    device: readDevice(key, deadDeviceAt),
    diedAtMs: diedAtMs + jumpsMs,
    queuedAtMs: queuedAtMs && queuedAtMs + jumpsMs,
  };
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
