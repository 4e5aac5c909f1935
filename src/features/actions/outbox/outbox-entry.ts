import type { DeviceKey } from '../../../core/identity.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import { pack, unpack } from '../../../storage/tables/codec.ts';
import type { MailSettings } from '../sandbox/run.ts';
import { readMails, type StoredMails, storedMails } from './stored-mails.ts';

/** A mail sent by a run. */
export interface OutgoingMail extends MailSettings {
  device: DeviceKey;
  name: string;
  payload: Buffer;
  /** Index among all mails of the run; part of its dedupe key. */
  ordinal: number;
}

/** The mails of one run, in flight. */
export interface OutboxEntry {
  action: Buffer;
  /** Number of the run. */
  run: number;
  /** The record that the run was for. */
  record: StoredRecord;
  mails: readonly OutgoingMail[];
}

/** Mails of one run, its first ones, whose ids are kept with it. */
export const runMailsKept = 100;

/** Memory of a mail besides its payload, about. */
const mailOverheadBytes = 256;

/** What is to be sent: payloads count for each mail. */
export function mailBytesOf({ mails }: OutboxEntry): number {
  return mails.reduce((sum, { payload }) => sum + payload.length + mailOverheadBytes, 0);
}

/** Record id 16, action id 16, ordinal 4: the `dedupeKey` of the mail. */
export function dedupeKeyOf({ record, action }: OutboxEntry, ordinal: number): Uint8Array {
  const key = new Uint8Array(record.id.length + action.length + 4);
  key.set(record.id);
  key.set(action, record.id.length);
  new DataView(key.buffer).setUint32(record.id.length + action.length, ordinal);
  return key;
}

export function encodeOutboxEntry({ mails, ...entry }: OutboxEntry): Buffer {
  return pack({ ...entry, ...storedMails(mails) });
}

/** @throws Error if it is not what `encodeOutboxEntry` made. */
export function decodeOutboxEntry(value: Buffer): OutboxEntry {
  const { action, run, record, ...stored } = unpack(value) as Omit<OutboxEntry, 'mails'> &
    StoredMails<OutgoingMail>;
  if (!Number.isInteger(run)) throw new Error('not an outbox entry');
  return { action: Buffer.from(action), run, record: decodeRecord(record), mails: readMails(stored) };
}

/** Copies a record out of the pages of the store, which are valid only until the next read. */
export function decodeRecord(record: StoredRecord): StoredRecord {
  return { ...record, id: Buffer.from(record.id), payload: Buffer.from(record.payload) };
}
