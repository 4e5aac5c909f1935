import type { Ingest, IngestOutcome } from '../../../domain/records/record.ts';
import type { ShardWrites } from '../../../domain/write.ts';
import type { TrimStep } from '../log/log-trimmer.ts';

/** An `Ingest` on its way to the owner: the record is as the log keeps it. */
export type Append = Pick<Ingest, 'device' | 'idempotency'> & { record: Uint8Array };

/** Every write that the owner of a shard knows: what it is given and what it answers. This is also what crosses threads. */
export interface Writes extends ShardWrites {
  ingest: { given: Append; answer: IngestOutcome };
  trim: { given: TrimStep; answer: undefined };
}

export type WriteType = keyof Writes;
export type Write = { [T in WriteType]: { type: T; given: Writes[T]['given'] } }[WriteType];
export type WriteAnswer<T extends WriteType = WriteType> = Writes[T]['answer'];

/**
 * Writes that make the store larger: refused when it is full, while all others go on. A requeue is one, since it
 * removes no mail and each is a record of the log; other verbs add what is bounded by the mail that they remove.
 */
export function addsRecords(write: Write): boolean {
  const growing: readonly WriteType[] = [
    'ingest',
    'enqueue',
    'broadcast',
    'replayMail',
    'createDevices',
    'putDevices',
  ];
  return growing.includes(write.type) || (write.type === 'settle' && write.given.verb === 'requeue');
}
