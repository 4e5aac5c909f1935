import type { DeviceKey } from '../core/identity.ts';
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
  Settle,
  SettleOutcome,
} from './shard.ts';

/** Limits of one round of the sweeper, and of forgetting what was sent, so that it never holds up the writes behind it. */
export const sweepRecordsMax = 1_000;

/** How many records the round removed of each table; as many as `sweepRecordsMax` means there are more. */
export interface SweepOutcome {
  mails: number;
  keys: number;
  secrets: number;
  logBatches: number;
}

/** An `Ingest` on its way to the owner: the record is as the log keeps it. */
export type Append = Pick<Ingest, 'device' | 'idempotency'> & { record: Uint8Array };

/** Every write a shard knows: what it is given and what it answers. This is also what crosses threads. */
export interface Writes {
  ingest: { given: Append; answer: IngestOutcome };
  settle: { given: Settle; answer: SettleOutcome };
  enqueue: { given: Enqueue; answer: EnqueueOutcome };
  forgetSent: { given: Uint8Array | undefined; answer: number };
  createDevices: { given: readonly Device[]; answer: DeviceKey | undefined };
  changeDevice: { given: { device: DeviceKey; change: DeviceChange }; answer: boolean };
  changeDevices: { given: { devices: readonly DeviceKey[]; change: DeviceChange }; answer: ChangeOutcome[] };
  putDevices: { given: readonly DevicePut[]; answer: PutOutcome[] };
  deleteDevice: { given: DeviceKey; answer: boolean };
  noteActivity: { given: readonly Activity[]; answer: undefined };
  sweep: { given: undefined; answer: SweepOutcome };
}

/** Told once how a write ended: answered when it is durable, or refused. */
export interface Completion<T> {
  resolve(answer: T): void;
  reject(error: Error): void;
}

export type WriteType = keyof Writes;
export type Write = { [T in WriteType]: { type: T; given: Writes[T]['given'] } }[WriteType];
export type Answer<T extends WriteType = WriteType> = Writes[T]['answer'];

/** Writes that make the store larger: refused when it is full, while all others go on. */
export function addsRecords(type: WriteType): boolean {
  return type === 'ingest' || type === 'enqueue' || type === 'createDevices' || type === 'putDevices';
}
