import type { DeviceKey } from '../../../core/identity.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import { unpack } from '../../../storage/lmdb/environment/codec.ts';

/** Mail of one run. */
export interface OutgoingMail {
  device: DeviceKey;
  name: string;
  payload: Buffer;
  /** Absent: the fleet's. */
  ttlSeconds?: number;
  /** Its place among all mails of the run, which is part of its identity. */
  ordinal: number;
}

/** All that one run sends, on its way. */
export interface OutboxEntry {
  action: Buffer;
  /** What the run was for. */
  record: StoredRecord;
  mails: readonly OutgoingMail[];
}

export function mailBytesOf({ mails }: OutboxEntry): number {
  return mails.reduce((sum, { payload }) => sum + payload.length, 0);
}

/** Record id 16, action id 16, ordinal 4: what `Enqueue.once` is for. */
export function identityOf({ record, action }: OutboxEntry, ordinal: number): Uint8Array {
  const identity = new Uint8Array(record.id.length + action.length + 4);
  identity.set(record.id);
  identity.set(action, record.id.length);
  new DataView(identity.buffer).setUint32(record.id.length + action.length, ordinal);
  return identity;
}

/** @throws Error when it is not what `put` stored. */
export function decodeOutboxEntry(value: Buffer): OutboxEntry {
  const { action, record, mails } = unpack(value) as OutboxEntry;
  if (!Array.isArray(mails)) throw new Error('not a parcel of mails');
  return {
    action: Buffer.from(action),
    record: decodeRecord(record),
    mails: mails.map((mail) => ({ ...mail, payload: Buffer.from(mail.payload) })),
  };
}

/** Out of the pages of the store, which are gone with the next read. */
export function decodeRecord(record: StoredRecord): StoredRecord {
  return { ...record, id: Buffer.from(record.id), payload: Buffer.from(record.payload) };
}
