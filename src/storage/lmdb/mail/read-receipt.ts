import type { DeviceKey } from '../../../core/identity.ts';
import { copyUuid } from '../../../core/uuid.ts';
import type { Receipt } from '../../../domain/mail/ended-mail.ts';
import { decodeDelayed } from '../layout/delayed-record.ts';
import { keyOfDevice, keyOfDeviceMail, keyOfReceipt } from '../layout/keys.ts';
import {
  readAcceptedAtMs,
  readExpiresAtMs,
  readFetchCount,
  readFirstFetchedAtMs,
  readName,
  readRequeueCount,
} from '../layout/mail-record.ts';
import { decodeMailbox } from '../layout/mailbox-record.ts';
import { decodeReceipt } from '../layout/receipt-record.ts';
import { storedJumpsMs } from '../layout/shard-clock.ts';
import type { Tables } from '../layout/tables.ts';
import { findMail } from './find-mail.ts';

/** What is known of a mail: while it waits the mail itself tells, afterwards what was kept of it. */
export function readReceipt(tables: Tables, device: DeviceKey, mailId: Uint8Array): Receipt | undefined {
  const known =
    waiting(tables, device, mailId) ?? delayed(tables, device, mailId) ?? ended(tables, device, mailId);
  if (known === undefined) return undefined;
  const jumpsMs = storedJumpsMs(tables.times);
  const byTheWall = (lifeMs: number | undefined): number | undefined =>
    lifeMs === undefined ? undefined : lifeMs + jumpsMs;
  return {
    ...known,
    device,
    mailId: copyUuid(mailId),
    deliverAtMs: byTheWall(known.deliverAtMs),
    queuedAtMs: byTheWall(known.queuedAtMs),
    expiresAtMs: byTheWall(known.expiresAtMs),
    settledAtMs: byTheWall(known.settledAtMs),
  };
}

/** By the shard's life time, but for the first fetch. */
type Known = Omit<Receipt, 'device' | 'mailId'>;

function waiting(tables: Tables, device: DeviceKey, mailId: Uint8Array): Known | undefined {
  const mailbox = tables.mailboxes.getBinary(keyOfDevice(device));
  const found = mailbox && findMail(tables, device, decodeMailbox(mailbox), mailId);
  if (found === undefined) return undefined;
  const { bytes } = found;
  return {
    state: 'queued',
    name: readName(bytes),
    deliverAtMs: undefined,
    queuedAtMs: readAcceptedAtMs(bytes),
    expiresAtMs: readExpiresAtMs(bytes),
    fetchCount: readFetchCount(bytes),
    firstFetchedAtMs: readFirstFetchedAtMs(bytes) || undefined,
    requeueCount: readRequeueCount(bytes),
    settledAtMs: undefined,
  };
}

function delayed(tables: Tables, device: DeviceKey, mailId: Uint8Array): Known | undefined {
  const bytes = tables.delayed.getBinaryFast(keyOfDeviceMail(device, mailId));
  if (bytes === undefined) return undefined;
  const { deliverAtMs, mail } = decodeDelayed(bytes);
  return {
    state: 'delayed',
    name: readName(mail),
    deliverAtMs,
    queuedAtMs: undefined,
    expiresAtMs: undefined,
    fetchCount: 0,
    firstFetchedAtMs: undefined,
    requeueCount: 0,
    settledAtMs: undefined,
  };
}

function ended(tables: Tables, device: DeviceKey, mailId: Uint8Array): Known | undefined {
  const bytes = tables.receipts.getBinaryFast(keyOfReceipt(mailId, device));
  return bytes && decodeReceipt(bytes);
}
