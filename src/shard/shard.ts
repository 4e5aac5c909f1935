import type { DeviceKey } from '../core/identity.ts';

/** Reads may answer at once (LMDB, no promise on the hot path) or later (an engine across the network). */
export type Awaitable<T> = T | Promise<T>;

/** What authenticating a request needs to know of a device. */
export interface DeviceCredentials {
  enabled: boolean;
  /** SHA-256 digests of the secrets that are valid now: one, or two while one is rotated out (D3). */
  secretDigests: readonly Uint8Array[];
}

export interface Device extends DeviceCredentials {
  device: DeviceKey;
  name: string;
  tags: readonly string[];
  createdAtMs: number;
}

export interface DeviceStatus extends Device {
  mailboxSize: number;
  /** Undefined until the device's first request was written down. */
  lastSeenMs: number | undefined;
}

/** Fields that an operator changes; an absent one stays. */
export interface DeviceChange {
  enabled?: boolean;
  name?: string;
  tags?: readonly string[];
  secretDigests?: readonly Uint8Array[];
}

export interface Mail {
  /** UUIDv7, 16 bytes. */
  id: Buffer;
  name: string;
  /** The bytes as they were sent (D11); `{}` for mail without payload. */
  payload: Buffer;
  requeueCount: number;
  fetchCount: number;
  /** This and the next: kept in the shard's life time (clock.ts), answered by the wall clock. */
  acceptedAtMs: number;
  expiresAtMs: number;
  firstFetchedAtMs: number | undefined;
}

export interface MailboxHead {
  size: number;
  /** Undefined exactly when size is 0. */
  mail: Mail | undefined;
}

/** Of records in the log, in the order of the numbers that it keeps them by: what is new comes last. */
export const recordKinds = ['datapoint', 'message'] as const;
export type RecordKind = (typeof recordKinds)[number];

export interface Ingest {
  device: DeviceKey;
  kind: RecordKind;
  schema: string;
  payload: Uint8Array;
  /** Both or neither: the key's 16 bytes, and SHA-256 of what must be the same when it comes again (D18). */
  idempotency?: { key: Uint8Array; digest: Uint8Array };
}

/** A record as the log holds it. */
export interface StoredRecord {
  /** Its place in the log of its shard. */
  position: number;
  /** UUIDv7, 16 bytes. */
  id: Buffer;
  device: DeviceKey;
  kind: RecordKind;
  schema: string;
  payload: Buffer;
  /** By the wall clock. */
  storedAtMs: number;
  /** Whether it came from the log of another shard, which a lower number of shards has given up. */
  isMoved: boolean;
}

/** What one look into the log answers: at most one of the commits that it was written in. */
export interface LogPage {
  records: StoredRecord[];
  /** Where to read on; the position asked for when nothing stands there yet. */
  next: number;
  /** There is something and it cannot be decoded: `next` is behind it. */
  damaged: boolean;
}

export type IngestOutcome = 'stored' | 'replayed' | 'key_reused' | 'key_too_old' | 'key_ahead';

export type SettleVerb = 'ack' | 'reject' | 'requeue';

export interface Settle {
  device: DeviceKey;
  mailId: Uint8Array;
  verb: SettleVerb;
}

export interface SettleOutcome {
  result: 'settled' | 'not_found' | 'already_settled';
  mailboxSize: number;
}

export interface Enqueue {
  device: DeviceKey;
  name: string;
  payload: Uint8Array;
  lifeSeconds: number;
  mailboxMailsMax: number;
  /**
   * What this mail is for, so that it is queued once however often it is sent: a UUIDv7's 16 bytes and 1 to 32
   * more. Remembered until `forgetSent`, whatever becomes of the mail and of the device.
   */
  once?: Uint8Array;
}

export type EnqueueOutcome =
  /** `repeated`: it was queued before, under that id, and nothing was done now. */
  | { result: 'queued'; mailId: Uint8Array; mailboxSize: number; repeated: boolean }
  | { result: 'mailbox_full'; mailboxSize: number }
  | { result: 'device_not_found' };

/** What the front ends saw of a device since they last told: kept in memory between (D13). */
export interface Activity {
  device: DeviceKey;
  lastSeenMs: number;
  fetches: readonly { mailId: Uint8Array; count: number; firstMs: number }[];
}

/** One announced mail, as `new_mail` carries it (D20). */
export interface Announcement {
  mailId: string;
  name: string;
  mailboxSize: number;
}

/** Where the announcements of one stream go. Neither call may throw or block. */
export interface StreamSink {
  announce(announcement: Announcement): void;
  /** The stream must end: displaced by a newer one, or the device was disabled, deleted or re-keyed (D21). */
  end(): void;
}

/** Tells, in the time of a memory access, whether anything of a device has changed since it was made. */
export interface Watch {
  isCurrent(): boolean;
}

export interface Page<T> {
  items: T[];
  /** Pass as `after` for the next page; null on the last one. */
  next: string | null;
}

/**
 * Everything that belongs to the devices of one shard. Every implementation passes one contract suite.
 * Writes settle when they are durable (D19) and reject with `unavailable` when they cannot be taken.
 */
export interface Shard {
  /** Whether a write would be taken now; asked before a body is read. */
  accepts(): boolean;

  /** Taken before reading, it says how long what was read holds. Undefined where the engine cannot tell. */
  watch(device: DeviceKey): Watch | undefined;
  credentials(device: DeviceKey): Awaitable<DeviceCredentials | undefined>;
  mailboxSize(device: DeviceKey): Awaitable<number>;
  mailboxHead(device: DeviceKey): Awaitable<MailboxHead>;
  device(device: DeviceKey): Awaitable<DeviceStatus | undefined>;
  /** In order of device id, from the one after `after`. */
  devices(fleetId: string, after: string, limit: number): Awaitable<DeviceStatus[]>;
  /** Ids of the fleet's devices that have the tag, in order, from the one after `after`. */
  devicesWithTag(fleetId: string, tag: string, after: string, limit: number): Awaitable<string[]>;
  /** In mailbox order. */
  mails(device: DeviceKey, after: string, limit: number): Awaitable<Page<Mail>>;

  /** In order of storage, from that position on; from the front where retention has trimmed the log so far. */
  records(from: number): Awaitable<LogPage>;
  /** The position that the next record gets. */
  logEnd(): Awaitable<number>;
  /**
   * From where on records stand that were stored at that time, by the wall clock, or later: some seconds early where
   * the clock was corrected.
   */
  positionAt(timeMs: number): Awaitable<number>;
  /** When what stands at a position was stored; undefined where nothing does, from there on. */
  timeAt(position: number): Awaitable<number | undefined>;
  /** From here on every record is in order of time: in front of it there may be those of shards that were given up. */
  movedEnd(): Awaitable<number>;

  /** Has copied the payload when it returns. */
  ingest(ingest: Ingest): Promise<IngestOutcome>;
  settle(settle: Settle): Promise<SettleOutcome>;
  enqueue(enqueue: Enqueue): Promise<EnqueueOutcome>;
  /**
   * Forgets the oldest `once`s whose UUIDv7 sorts before those 16 bytes, or of all, in one write that holds
   * nobody up. Answers how many there were: none is the end of it.
   */
  forgetSent(before: Uint8Array | undefined): Promise<number>;
  /** All of them or, when one exists already, none: answers that one's key. */
  createDevices(devices: readonly Device[]): Promise<DeviceKey | undefined>;
  /** Ends the device's streams where it is disabled or re-keyed. False if there is no such device. */
  changeDevice(device: DeviceKey, change: DeviceChange): Promise<boolean>;
  /** With its mailbox; ends its streams. False if there was no such device. */
  deleteDevice(device: DeviceKey): Promise<boolean>;
  noteActivity(activity: readonly Activity[]): Promise<void>;

  /** Registers the stream before it settles, so that no mail that is announced after is missed. */
  subscribe(device: DeviceKey, sink: StreamSink): Promise<() => void>;
}
