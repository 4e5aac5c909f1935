import type { DeviceKey } from '../../core/identity.ts';
import type { MailboxFront, MailFront, Settle, SettleOutcome } from '../mail/mail.ts';
import type { Ingest } from '../records/record.ts';
import type { QueueRange, QueueStand } from './device-queues.ts';

/** A record of a sync that was accepted. Its payload must not change until the call settles. */
export type SyncRecord = Pick<Ingest, 'kind' | 'schema' | 'payload' | 'recordedAtMs'>;

export type SyncSettle = Omit<Settle, 'device' | 'readsHead'>;

/** A whole wake of a device in one transaction (D29): records in their order, then settlements, then mail is read. */
export interface Sync {
  device: DeviceKey;
  /** Undefined for a record that was refused: in a queue it has its number all the same. */
  records: readonly (SyncRecord | undefined)[];
  queue: QueueRange | undefined;
  settlements: readonly SyncSettle[];
  mail: MailFront;
}

/** What a sync has written. */
export interface SyncWritten {
  /** Where the queue stands now, if there is one. */
  queue: QueueStand | undefined;
  /** Undefined for a settlement whose mail is damaged: it costs no other item. */
  settled: readonly (SettleOutcome | undefined)[];
}

export interface SyncOutcome extends SyncWritten {
  /** Undefined if it cannot be read: what was written is written all the same. */
  mailbox: MailboxFront | undefined;
}

/** Bytes of the replies of settlements. */
export function replyBytes(settlements: readonly SyncSettle[]): number {
  return settlements.reduce((sum, { reply }) => sum + (reply?.length ?? 0), 0);
}

/** True if a sync only reads. */
export function isReading({ records, queue, settlements }: Sync): boolean {
  if (settlements.length > 0) return false;
  return queue === undefined ? records.every((record) => record === undefined) : records.length === 0;
}
