import type { Awaitable, Page } from '../../domain/shard.ts';

export type BroadcastTarget = { devices: readonly string[] } | { tag: string } | { all: true };

/** What a sender asks for; the payload and its schema have been checked. */
export interface BroadcastRequest {
  name: string;
  payload: Uint8Array;
  to: BroadcastTarget;
  /** Absent: the fleet's at the time that a mail is sent. */
  ttlSeconds?: number;
  mailboxMailsMax?: number;
  requeuesMax?: number;
  /** Absent or past when it is sent: at once. */
  deliverAtMs?: number;
  /** The sender's key and the digest of its request (D18). */
  idempotency?: { key: Uint8Array; digest: Uint8Array };
}

export type BroadcastState = 'running' | 'paused' | 'done' | 'cancelled';
/** `not_stored`: the shard fails at this device, for a damaged record of it, say. */
export type RefusalReason = 'mailbox_full' | 'delayed_full' | 'device_not_found' | 'not_stored';

/** A broadcast and how far it has come. */
export interface BroadcastStatus {
  /** UUIDv7. */
  id: string;
  request: Omit<BroadcastRequest, 'payload' | 'to' | 'idempotency'>;
  payloadBytes: number;
  to: { listed: number } | { tag: string } | { all: true };
  state: BroadcastState;
  /** How many devices there are to send to, counted as it began; undefined until that is known. */
  devices: number | undefined;
  queued: number;
  refused: number;
  createdAtMs: number;
  /** Done or cancelled. */
  endedAtMs: number | undefined;
}

export interface BroadcastRefusalCount {
  deviceId: string;
  reason: RefusalReason;
}

/** Mails of all broadcasts since the start, by what became of them. */
export type BroadcastCounts = Readonly<Record<'queued' | RefusalReason, number>>;

/** What the admin API asks of broadcasts. The fleet is known to exist. */
export interface BroadcastService {
  /**
   * Settles when it is on disk; it goes on by itself. `isReplay`: it was put before under that key.
   * @throws ApiError limit_reached, unavailable, idempotency_key_reused, invalid_idempotency_key.
   */
  put(fleetId: string, request: BroadcastRequest): Promise<{ status: BroadcastStatus; isReplay: boolean }>;
  /** The newest first, from the one before `after`. */
  list(fleetId: string, after: string | undefined, limit: number): Awaitable<Page<BroadcastStatus>>;
  /** @throws ApiError broadcast_not_found, as all that name one. */
  get(fleetId: string, id: string): Awaitable<BroadcastStatus>;
  /** In order of device id, from the one after `after`. */
  refusals(fleetId: string, id: string, after: string, limit: number): Awaitable<Page<BroadcastRefusalCount>>;
  /** Nothing more is sent when it settles. @throws ApiError broadcast_ended. */
  pause(fleetId: string, id: string): Promise<BroadcastStatus>;
  /** @throws ApiError broadcast_ended. */
  resume(fleetId: string, id: string): Promise<BroadcastStatus>;
  /** For good; what was sent stays where it is. @throws ApiError broadcast_ended. */
  cancel(fleetId: string, id: string): Promise<BroadcastStatus>;
  /** @throws ApiError broadcast_running. */
  delete(fleetId: string, id: string): Promise<void>;
  /** How many run or are paused. */
  readonly active: number;
  readonly counts: BroadcastCounts;
}
