import type { DeviceKey } from '../core/identity.ts';
import type {
  Activity,
  Authentication,
  ChangeOutcome,
  Device,
  DeviceChange,
  DevicePut,
  DeviceStatus,
  FleetCounts,
  PutOutcome,
} from './devices/device.ts';
import type {
  DeviceFilter,
  DeviceIndex,
  DeviceQuery,
  FoundDevices,
  Presence,
  SeenCount,
} from './devices/device-query.ts';
import type { Broadcast, BroadcastOutcome, BroadcastProgress } from './mail/broadcast.ts';
import type { DeadLetter, DeadLetterFilter, DeadLetterWithPayload, Receipt } from './mail/ended-mail.ts';
import type {
  Announcement,
  Enqueue,
  EnqueueOutcome,
  Mail,
  MailboxHead,
  Replay,
  ReplayOutcome,
  Settle,
  SettleOutcome,
  Withdrawal,
} from './mail/mail.ts';
import type { Ingest, IngestOutcome, LogPage } from './records/record.ts';

/**
 * Reads may answer synchronously (LMDB, no promise on the hot path) or asynchronously (an engine across the network).
 */
export type Awaitable<T> = T | Promise<T>;

/** Receives the announcements of one stream. Its methods must neither throw nor block. */
export interface StreamSink {
  announce(announcement: Announcement): void;
  /** An old secret of the device has ended: the stream must end if it was opened with that one. */
  recheck(): void;
  /** The stream must end: replaced by a newer one, or the device was disabled, deleted or re-keyed (D21). */
  end(): void;
}

/**
 * Checks, at the cost of a memory access, whether the device, its credentials or its mailbox changed since the token
 * was taken. A device's tokens on all threads expire before the change is answered. Fetches and last-seen times do
 * not count as changes.
 */
export interface ChangeToken {
  isCurrent(): boolean;
}

export interface Page<T> {
  items: T[];
  /** Pass as `after` for the next page; null on the last one. */
  next: string | null;
}

/**
 * All devices of one shard with their data. Every implementation passes one contract suite. Writes settle when
 * durable (D19), and reject with `unavailable` when they cannot be accepted, or after the shard is closed. Concurrent
 * writes are unordered. Read-your-writes on the answering node; other nodes are eventually consistent.
 */
export interface Shard {
  /** Whether a write would be accepted now; checked before a body is read. */
  accepts(): boolean;

  /** Take it before reading, to know how long the result stays valid. Undefined if the engine cannot tell. */
  changeToken(device: DeviceKey): ChangeToken | undefined;
  credentials(device: DeviceKey): Awaitable<Authentication | undefined>;
  mailboxSize(device: DeviceKey): Awaitable<number>;
  mailboxHead(device: DeviceKey): Awaitable<MailboxHead>;
  device(device: DeviceKey): Awaitable<DeviceStatus | undefined>;
  /** One step of a search: scans a bounded number of entries of one index, whatever it finds. */
  findDevices(query: DeviceQuery): Awaitable<FoundDevices>;
  /** Counts the index entries that a search would scan, up to `max`. */
  countEntries(by: DeviceIndex, filter: DeviceFilter, max: number): Awaitable<number>;
  fleetCounts(fleetId: string): Awaitable<FleetCounts>;
  /**
   * Counts those of the next `scanMax` entries after `after` that were seen at `seenAfterMs` or later; the filter has
   * no other condition but the fleet.
   */
  countSeen(filter: DeviceFilter, after: string, scanMax: number): Awaitable<SeenCount>;
  readonly presence: Presence;
  /** In order of device id, after `after`. */
  deviceIds(fleetId: string, after: string, limit: number): Awaitable<string[]>;
  /** Ids of the fleet's devices with the tag, in order, after `after`. */
  devicesWithTag(fleetId: string, tag: string, after: string, limit: number): Awaitable<string[]>;
  /** In mailbox order. A cursor is a whole number up to 2^48 - 2 as text: a position, whatever mail is there now. */
  mails(device: DeviceKey, after: string, limit: number): Awaitable<Page<Mail>>;

  /** Undefined if the mail never existed, or its receipt is no longer retained. */
  receipt(device: DeviceKey, mailId: Uint8Array): Awaitable<Receipt | undefined>;
  /**
   * In order of mail id, after the cursor, which is the mail id and device of a letter in hexadecimal. Each call
   * scans a bounded number: a page may have fewer than `limit`, or none, and still have a next one.
   */
  deadLetters(
    fleetId: string,
    filter: DeadLetterFilter,
    after: string,
    limit: number,
  ): Awaitable<Page<DeadLetter>>;
  deadLetter(device: DeviceKey, mailId: Uint8Array): Awaitable<DeadLetterWithPayload | undefined>;

  /**
   * In order of storage, starting at the position, or at the front if retention has trimmed past it. Positions only
   * grow, with gaps where retention removed records. No record ever appears before one already read.
   */
  records(from: number): Awaitable<LogPage>;
  /** The position of the next record to be appended. */
  logEnd(): Awaitable<number>;
  /**
   * The position from which on records were stored at that time or later, by the wall clock: some seconds early if
   * the clock was corrected.
   */
  positionAt(timeMs: number): Awaitable<number>;
  /** When the record at a position was stored; undefined if there is none from there on. */
  timeAt(position: number): Awaitable<number | undefined>;
  /**
   * From this position on records are ordered by time; before it there may be records of shards that were removed.
   */
  reorderedUntil(): Awaitable<number>;

  /**
   * Copies the payload before returning. Does not check that the device exists. A remembered key is answered whatever
   * its time; a forgotten one is too old, even if the window is raised later.
   */
  ingest(ingest: Ingest): Promise<IngestOutcome>;
  settle(settle: Settle): Promise<SettleOutcome>;
  enqueue(enqueue: Enqueue): Promise<EnqueueOutcome>;
  /** Withdraws a queued or delayed mail. */
  withdrawMail(device: DeviceKey, mailId: Uint8Array): Promise<Withdrawal>;
  /** Queues a dead letter as a new mail and removes it, in one transaction. */
  replayMail(replay: Replay): Promise<ReplayOutcome>;
  /** Returns false if there is no such letter. */
  dropDeadLetter(device: DeviceKey, mailId: Uint8Array): Promise<boolean>;
  /**
   * Forgets the oldest dedupe keys: those whose UUIDv7 sorts before the 16 bytes, or any. One bounded write; returns
   * the number removed, 0 when done.
   */
  pruneDedupeKeys(before: Uint8Array | undefined): Promise<number>;
  /** Mail for some dozens of devices in one write, which blocks all others. */
  broadcast(broadcast: Broadcast): Promise<BroadcastOutcome>;
  /**
   * Forgets which devices got mail of broadcasts, except where an active broadcast may still repeat it. One bounded
   * write; returns the number removed, 0 when done.
   */
  pruneBroadcasts(active: readonly BroadcastProgress[]): Promise<number>;
  /** Creates all or, if one exists or is listed twice, none: then returns its key. */
  createDevices(devices: readonly Device[]): Promise<DeviceKey | undefined>;
  /** Ends the device's streams if it is disabled or re-keyed. Returns false only if there is no such device. */
  changeDevice(device: DeviceKey, change: DeviceChange): Promise<boolean>;
  /** One write: keep the number bounded. Outcomes are in the order of `devices`. */
  changeDevices(devices: readonly DeviceKey[], change: DeviceChange): Promise<ChangeOutcome[]>;
  putDevices(puts: readonly DevicePut[]): Promise<PutOutcome[]>;
  /**
   * Deletes the device and its mailbox, and ends its streams. Receipts, keys and dedupe keys stay; dead letters are
   * removed some time later. Returns false if there was no such device.
   */
  deleteDevice(device: DeviceKey): Promise<boolean>;
  /** Ignores unknown devices and mail. Accepted even if the queue is full. */
  noteActivity(activity: readonly Activity[]): Promise<void>;

  /** Registers the stream before settling, so that no mail announced later is missed. */
  subscribe(device: DeviceKey, sink: StreamSink): Promise<() => void>;
}
