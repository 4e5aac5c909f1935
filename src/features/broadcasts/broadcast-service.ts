import type { Awaitable } from '../../core/async.ts';
import type { DeviceFilter } from '../../domain/devices/device-query.ts';
import type { Page } from '../../domain/page.ts';

/** Devices that match a filter, each when its turn comes. `as`: the filters of the request, with times as text. */
export interface FilteredTarget {
  filter: DeviceFilter;
  as: Readonly<Record<string, unknown>>;
}

export type BroadcastTarget = { devices: readonly string[] } | FilteredTarget;

/** A request whose payload has been checked against its schema. */
export interface BroadcastRequest {
  name: string;
  payload: Uint8Array;
  to: BroadcastTarget;
  /** Absent: the fleet's setting when a mail is sent. */
  ttlSeconds?: number;
  mailboxMailsMax?: number;
  requeuesMax?: number;
  replaceKey?: string;
  /** Delivered at once if absent or in the past. */
  deliverAtMs?: number;
  /** Pauses once so many devices had their turn, if others remain. */
  pauseAfter?: number;
  /** Idempotency key and digest of the request (D18). */
  idempotency?: { key: Uint8Array; digest: Uint8Array };
}

export type BroadcastState = 'running' | 'paused' | 'done' | 'cancelled';
/** `not_stored`: the shard fails for this device, because of a damaged record for example. */
export type RefusalReason =
  | 'mailbox_full'
  | 'delayed_full'
  | 'fleet_mail_full'
  | 'device_not_found'
  | 'not_stored';

/** Refusals by reason; absent: none. */
export type ReasonCounts = Partial<Record<RefusalReason, number>>;

/** A broadcast and its progress. */
export interface BroadcastStatus {
  /** UUIDv7. */
  id: string;
  request: Omit<BroadcastRequest, 'payload' | 'to' | 'idempotency'>;
  payloadBytes: number;
  to: { listed: number } | FilteredTarget;
  state: BroadcastState;
  /** Number of target devices, counted at the start; undefined until known. */
  devices: number | undefined;
  queued: number;
  refused: number;
  reasons: ReasonCounts;
  createdAtMs: number;
  /** When it was done or cancelled. */
  endedAtMs: number | undefined;
}

export interface BroadcastRefusalCount {
  deviceId: string;
  reason: RefusalReason;
}

/** Mails of all broadcasts since the start, by outcome. */
export type BroadcastCounts = Readonly<Record<'queued' | RefusalReason, number>>;

/** Broadcasts for the admin API. The fleet must exist. */
export interface BroadcastService {
  /**
   * Settles once durable; the broadcast then runs by itself. `isReplay`: it was put before with the same key.
   * @throws ApiError limit_reached, unavailable, idempotency_key_reused, invalid_idempotency_key.
   */
  put(fleetId: string, request: BroadcastRequest): Promise<{ status: BroadcastStatus; isReplay: boolean }>;
  /** Lists broadcasts, newest first, after `after`. */
  list(fleetId: string, after: string | undefined, limit: number): Awaitable<Page<BroadcastStatus>>;
  /** @throws ApiError broadcast_not_found, as all methods with an id do. */
  get(fleetId: string, id: string): Awaitable<BroadcastStatus>;
  payload(fleetId: string, id: string): Awaitable<Uint8Array>;
  /** Lists refusals by device id, after `after`. */
  refusals(fleetId: string, id: string, after: string, limit: number): Awaitable<Page<BroadcastRefusalCount>>;
  /** Nothing more is sent once it settles. @throws ApiError broadcast_ended. */
  pause(fleetId: string, id: string): Promise<BroadcastStatus>;
  /** @throws ApiError broadcast_ended. */
  resume(fleetId: string, id: string): Promise<BroadcastStatus>;
  /** Ends it for good; mail already sent stays. @throws ApiError broadcast_ended. */
  cancel(fleetId: string, id: string): Promise<BroadcastStatus>;
  /** @throws ApiError broadcast_running. */
  delete(fleetId: string, id: string): Promise<void>;
  /** Number of running and paused broadcasts. */
  readonly active: number;
  readonly counts: BroadcastCounts;
}
