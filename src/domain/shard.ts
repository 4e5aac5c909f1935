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

/** Reads may answer at once (LMDB, no promise on the hot path) or later (an engine across the network). */
export type Awaitable<T> = T | Promise<T>;

/** Where the announcements of one stream go. Neither call may throw or block. */
export interface StreamSink {
  announce(announcement: Announcement): void;
  /** An old secret of the device has ended: the stream must end if it was opened with that. */
  recheck(): void;
  /** The stream must end: displaced by a newer one, or the device was disabled, deleted or re-keyed (D21). */
  end(): void;
}

/**
 * Tells, in the time of a memory access, whether the device, its credentials or its mailbox have changed since it was
 * made: when a write is answered, for all watches everywhere. Fetches and when it was seen are no change.
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
 * Everything that belongs to the devices of one shard. Every implementation passes one contract suite.
 * Writes settle when they are durable (D19) and reject with `unavailable` when they cannot be taken, also once the shard
 * is closed. Of writes that are under way at once any may be first. Whoever was answered sees his write from then on;
 * other nodes may be some moments behind.
 */
export interface Shard {
  /** Whether a write would be taken now; asked before a body is read. */
  accepts(): boolean;

  /** Taken before reading, it says how long what was read holds. Undefined where the engine cannot tell. */
  changeToken(device: DeviceKey): ChangeToken | undefined;
  credentials(device: DeviceKey): Awaitable<Authentication | undefined>;
  mailboxSize(device: DeviceKey): Awaitable<number>;
  mailboxHead(device: DeviceKey): Awaitable<MailboxHead>;
  device(device: DeviceKey): Awaitable<DeviceStatus | undefined>;
  /** One step of a search: it looks at so many entries of one index and no more, whatever it finds. */
  findDevices(query: DeviceQuery): Awaitable<FoundDevices>;
  /** How many entries of that index a search would look at, counted up to `max`. */
  countEntries(by: DeviceIndex, filter: DeviceFilter, max: number): Awaitable<number>;
  fleetCounts(fleetId: string): Awaitable<FleetCounts>;
  /**
   * How many of the next `looks` entries behind `after` were seen not earlier than `seenAfterMs`, which is all that the
   * filter says besides the fleet, and where to go on.
   */
  countSeen(filter: DeviceFilter, after: string, looks: number): Awaitable<SeenCount>;
  readonly presence: Presence;
  /** In order of device id, from the one after `after`. */
  deviceIds(fleetId: string, after: string, limit: number): Awaitable<string[]>;
  /** Ids of the fleet's devices that have the tag, in order, from the one after `after`. */
  devicesWithTag(fleetId: string, tag: string, after: string, limit: number): Awaitable<string[]>;
  /** In mailbox order. A cursor is a whole number up to 2^48 - 2 as text: a place, whatever stands there now. */
  mails(device: DeviceKey, after: string, limit: number): Awaitable<Page<Mail>>;

  /** Undefined for a mail that never was, or whose receipt is not kept any more. */
  receipt(device: DeviceKey, mailId: Uint8Array): Awaitable<Receipt | undefined>;
  /**
   * In order of mail id, from the one after the cursor on, which is the mail id and the device of a letter in
   * hexadecimal digits. A look is bounded: there may be fewer than `limit`, or none, and yet a next page.
   */
  deadLetters(
    fleetId: string,
    filter: DeadLetterFilter,
    after: string,
    limit: number,
  ): Awaitable<Page<DeadLetter>>;
  deadLetter(device: DeviceKey, mailId: Uint8Array): Awaitable<DeadLetterWithPayload | undefined>;

  /**
   * In order of storage, from that position on; from the front where retention has trimmed the log so far. Positions
   * only grow, with gaps where retention cut records out. No record ever comes in front of one that was read.
   */
  records(from: number): Awaitable<LogPage>;
  /** The position that the next record gets, and where reading on ends. */
  logEnd(): Awaitable<number>;
  /**
   * From where on records stand that were stored at that time, by the wall clock, or later: some seconds early where
   * the clock was corrected.
   */
  positionAt(timeMs: number): Awaitable<number>;
  /** When what stands at a position was stored; undefined where nothing does, from there on. */
  timeAt(position: number): Awaitable<number | undefined>;
  /** From here on every record is in order of time: in front of it there may be those of shards that were given up. */
  reorderedUntil(): Awaitable<number>;

  /**
   * Has copied the payload when it returns. The device is not looked for. A key that is remembered is answered
   * whatever the time is; one that was forgotten is too old, whatever the window is later.
   */
  ingest(ingest: Ingest): Promise<IngestOutcome>;
  settle(settle: Settle): Promise<SettleOutcome>;
  enqueue(enqueue: Enqueue): Promise<EnqueueOutcome>;
  /** Takes a mail back that waits, in its mailbox or for its time. */
  withdrawMail(device: DeviceKey, mailId: Uint8Array): Promise<Withdrawal>;
  /** Queues a dead letter anew and removes it, in one transaction. */
  replayMail(replay: Replay): Promise<ReplayOutcome>;
  /** False if there is no such letter. */
  dropDeadLetter(device: DeviceKey, mailId: Uint8Array): Promise<boolean>;
  /**
   * Forgets the oldest `once`s whose UUIDv7 sorts before those 16 bytes, or of all, in one write that holds
   * nobody up. Answers how many there were: none is the end of it.
   */
  pruneDedupeKeys(before: Uint8Array | undefined): Promise<number>;
  /** Mail for some dozens of devices in one write, which all others wait for. */
  broadcast(broadcast: Broadcast): Promise<BroadcastOutcome>;
  /**
   * Forgets who has had mail of broadcasts, but for those that an active one has not come to for good, in one
   * write that holds nobody up. Answers how many there were: none is the end of it.
   */
  pruneBroadcasts(active: readonly BroadcastProgress[]): Promise<number>;
  /** All of them or, when one exists already or is among them twice, none: answers that one's key. */
  createDevices(devices: readonly Device[]): Promise<DeviceKey | undefined>;
  /** Ends the device's streams where it is disabled or re-keyed. False only if there is no such device. */
  changeDevice(device: DeviceKey, change: DeviceChange): Promise<boolean>;
  /** All in one write: so many that it holds nobody up. Each outcome is that of the device at its place. */
  changeDevices(devices: readonly DeviceKey[], change: DeviceChange): Promise<ChangeOutcome[]>;
  putDevices(puts: readonly DevicePut[]): Promise<PutOutcome[]>;
  /**
   * With its mailbox; ends its streams. Receipts, keys and what mail was sent for stay; dead letters go some time
   * later. False if there was no such device.
   */
  deleteDevice(device: DeviceKey): Promise<boolean>;
  /** Passes over what is not there. A full queue is no reason to refuse it. */
  noteActivity(activity: readonly Activity[]): Promise<void>;

  /** Registers the stream before it settles, so that no mail that is announced after is missed. */
  subscribe(device: DeviceKey, sink: StreamSink): Promise<() => void>;
}
