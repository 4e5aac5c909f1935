import type { Settle } from '../../../domain/mail/mail.ts';
import type { Ingest, IngestOutcome } from '../../../domain/records/record.ts';
import type { Sync, SyncWritten } from '../../../domain/sync/sync.ts';
import type { ShardWrites } from '../../../domain/write.ts';
import type { IndexStep } from '../log/log-indexer.ts';
import type { EncodedRecords } from '../log/log-record.ts';
import type { TrimStep } from '../log/log-trimmer.ts';

/** An `Ingest` for the owner: its record is already encoded for the log. */
export type Append = Pick<Ingest, 'device' | 'idempotency'> & { record: Uint8Array };

/** A `Sync` for the owner: its records are already encoded, and the mailbox is read after the commit. */
export type AppendSync = Pick<Sync, 'device' | 'queue' | 'settlements'> & { records: EncodedRecords };

/** Parameters and answer of every write to a shard's owner. They also cross threads. */
export interface Writes extends ShardWrites {
  ingest: { params: Append; answer: IngestOutcome };
  sync: { params: AppendSync; answer: SyncWritten };
  trim: { params: TrimStep; answer: undefined };
  index: { params: IndexStep; answer: undefined };
}

export type WriteType = keyof Writes;
export type Write = { [T in WriteType]: { type: T; params: Writes[T]['params'] } }[WriteType];
export type WriteAnswer<T extends WriteType = WriteType> = Writes[T]['answer'];

const mailTypes: readonly WriteType[] = ['enqueue', 'broadcast', 'replayMail', 'createDevices', 'putDevices'];

/** True if a write adds mail or devices, of which there may be as much as operators and actions like. */
export function addsMail({ type }: Write): boolean {
  return mailTypes.includes(type);
}

/**
 * True if a write grows the store: these are refused when it is full, while others go on. A requeue does, since it
 * removes no mail and each adds a record to the log, and so does one with a reply; others add no more than the mail that
 * they remove.
 */
export function addsRecords(write: Write): boolean {
  const grows = ({ verb, reply }: Pick<Settle, 'verb' | 'reply'>): boolean =>
    verb === 'requeue' || reply !== undefined;
  if (write.type === 'settle') return grows(write.params);
  if (write.type !== 'sync') return write.type === 'ingest' || addsMail(write);
  return write.params.records.bytes.length > 0 || write.params.settlements.some(grows);
}
