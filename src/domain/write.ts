import type { DeviceKey } from '../core/identity.ts';
import type {
  Activity,
  ChangeOutcome,
  Device,
  DeviceChange,
  DevicePut,
  PutOutcome,
} from './devices/device.ts';
import type { Broadcast, BroadcastOutcome, BroadcastProgress } from './mail/broadcast.ts';
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

/** Limit of one round of the sweeper, and of forgetting what was sent, so that it never holds up the writes behind it. */
export const sweepRecordsMax = 1_000;

/** The same of mails that expire and that are delivered, each with all that it brings about: 0.2 ms and more of it. */
export const sweepMailsMax = 32;

/** Every write that both engines know: what it is given and what it answers. Each takes in records in its own way. */
export interface ShardWrites {
  settle: { given: Settle; answer: SettleOutcome };
  enqueue: { given: Enqueue; answer: EnqueueOutcome };
  withdrawMail: { given: { device: DeviceKey; mailId: Uint8Array }; answer: Withdrawal };
  replayMail: { given: Replay; answer: ReplayOutcome };
  dropDeadLetter: { given: { device: DeviceKey; mailId: Uint8Array }; answer: boolean };
  pruneDedupeKeys: { given: Uint8Array | undefined; answer: number };
  broadcast: { given: Broadcast; answer: BroadcastOutcome };
  pruneBroadcasts: { given: readonly BroadcastProgress[]; answer: number };
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
}

/** Told once how a write ended: answered when it is durable, or refused. */
export interface Completion<T> {
  resolve(answer: T): void;
  reject(error: Error): void;
}

/** What follows a commit, and only a commit: mail to announce, streams to end. */
export interface Effects {
  /** Devices whose credentials or mailbox are other than before. */
  changed: DeviceKey[];
  announcements: { device: DeviceKey; announcement: Announcement }[];
  endedStreams: DeviceKey[];
  /** Of devices whose old secret has ended. */
  recheckedStreams: DeviceKey[];
  /** Dead letters that went for newer ones. */
  droppedLetters: number;
}
