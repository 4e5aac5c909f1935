import type { DeviceKey } from '../core/identity.ts';
import type { TrimStep } from '../storage/lmdb/log/log-trimmer.ts';
import type { Broadcast, BroadcastOutcome, BroadcastProgress } from './mail/broadcast.ts';
import type {
  Activity,
  ChangeOutcome,
  Device,
  DeviceChange,
  DevicePut,
  Enqueue,
  EnqueueOutcome,
  Ingest,
  IngestOutcome,
  PutOutcome,
  Replay,
  ReplayOutcome,
  Settle,
  SettleOutcome,
  Withdrawal,
} from './shard.ts';

/** Limit of one round of the sweeper, and of forgetting what was sent, so that it never holds up the writes behind it. */
export const sweepRecordsMax = 1_000;

/** The same of mails that expire and that are delivered, each with all that it brings about: 0.2 ms and more of it. */
export const sweepMailsMax = 32;

/** An `Ingest` on its way to the owner: the record is as the log keeps it. */
export type Append = Pick<Ingest, 'device' | 'idempotency'> & { record: Uint8Array };

/** Every write a shard knows: what it is given and what it answers. This is also what crosses threads. */
export interface Writes {
  ingest: { given: Append; answer: IngestOutcome };
  settle: { given: Settle; answer: SettleOutcome };
  enqueue: { given: Enqueue; answer: EnqueueOutcome };
  withdrawMail: { given: { device: DeviceKey; mailId: Uint8Array }; answer: Withdrawal };
  replayMail: { given: Replay; answer: ReplayOutcome };
  dropDeadLetter: { given: { device: DeviceKey; mailId: Uint8Array }; answer: boolean };
  forgetSent: { given: Uint8Array | undefined; answer: number };
  broadcast: { given: Broadcast; answer: BroadcastOutcome };
  forgetBroadcasts: { given: readonly BroadcastProgress[]; answer: number };
  createDevices: { given: readonly Device[]; answer: DeviceKey | undefined };
  changeDevice: { given: { device: DeviceKey; change: DeviceChange }; answer: boolean };
  changeDevices: { given: { devices: readonly DeviceKey[]; change: DeviceChange }; answer: ChangeOutcome[] };
  putDevices: { given: readonly DevicePut[]; answer: PutOutcome[] };
  deleteDevice: { given: DeviceKey; answer: boolean };
  noteActivity: { given: readonly Activity[]; answer: undefined };
  /**
   * `due`: mail and old secrets, whose time it is; `old`: what is in no hurry. Answers whether there is more of it
   * than one round may deal with.
   */
  sweep: { given: 'due' | 'old'; answer: boolean };
  trim: { given: TrimStep; answer: undefined };
}

/** Told once how a write ended: answered when it is durable, or refused. */
export interface Completion<T> {
  resolve(answer: T): void;
  reject(error: Error): void;
}

export type WriteType = keyof Writes;
export type Write = { [T in WriteType]: { type: T; given: Writes[T]['given'] } }[WriteType];
export type Answer<T extends WriteType = WriteType> = Writes[T]['answer'];

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
