import type { DeviceKey } from '../core/identity.ts';
import type {
  Activity,
  ChangeOutcome,
  Device,
  DeviceChange,
  DevicePut,
  PutOutcome,
} from './devices/device.ts';
import type { Broadcast, BroadcastOutcome } from './mail/broadcast.ts';
import type {
  Announcement,
  Enqueue,
  EnqueueOutcome,
  Replay,
  ReplayOutcome,
  Settle,
  SettleOutcome,
  Withdrawal,
} from './mail/mail.ts';

/** Records per round of the sweeper, or of pruning dedupe keys, so that it never delays the writes behind it. */
export const sweepRecordsMax = 1_000;

/** Mails per round of expiry and delivery, each of which costs 0.2 ms or more with its consequences. */
export const sweepMailsMax = 32;

/**
 * Number of writes under way below which no commit is delayed: a shard with so little to do favours latency over
 * throughput.
 */
export const busyWrites = 8;

/** Parameters and answer of every write that both engines have. Each engine defines its own `ingest`. */
export interface ShardWrites {
  settle: { params: Settle; answer: SettleOutcome };
  enqueue: { params: Enqueue; answer: EnqueueOutcome };
  withdrawMail: { params: { device: DeviceKey; mailId: Uint8Array }; answer: Withdrawal };
  replayMail: { params: Replay; answer: ReplayOutcome };
  dropDeadLetter: { params: { device: DeviceKey; mailId: Uint8Array }; answer: boolean };
  pruneDedupeKeys: { params: Uint8Array | undefined; answer: number };
  broadcast: { params: Broadcast; answer: BroadcastOutcome };
  forgetBroadcast: { params: Uint8Array; answer: number };
  createDevices: { params: readonly Device[]; answer: DeviceKey | undefined };
  changeDevice: { params: { device: DeviceKey; change: DeviceChange }; answer: boolean };
  changeDevices: { params: { devices: readonly DeviceKey[]; change: DeviceChange }; answer: ChangeOutcome[] };
  putDevices: { params: readonly DevicePut[]; answer: PutOutcome[] };
  deleteDevice: { params: DeviceKey; answer: boolean };
  noteActivity: { params: readonly Activity[]; answer: undefined };
  /**
   * `due`: mail and old secrets that are due; `expired`: the same without delayed mail; `old`: whatever is not urgent.
   * Returns whether more is left than one round may handle.
   */
  sweep: { params: 'due' | 'expired' | 'old'; answer: boolean };
}

/** Takes the writes of one shard, and refuses what is beyond its bounds. */
export interface WriteSink {
  /** Settles when the write is durable. `bytes` is the size of its payload. @throws ApiError unavailable */
  write<T extends keyof ShardWrites>(
    type: T,
    params: ShardWrites[T]['params'],
    bytes?: number,
  ): Promise<ShardWrites[T]['answer']>;
}

/** Called once with the outcome of a write: durable, or refused. */
export interface Completion<T> {
  resolve(answer: T): void;
  reject(error: Error): void;
}

/** Effects to apply after the commit, and only then: mail to announce, streams to end. */
export interface Effects {
  /** Devices whose credentials or mailbox changed. */
  changed: DeviceKey[];
  announcements: { device: DeviceKey; announcement: Announcement }[];
  endedStreams: DeviceKey[];
  /** Devices whose old secret has ended. */
  recheckedStreams: DeviceKey[];
  /** Dead letters dropped for newer ones. */
  droppedLetters: number;
}
