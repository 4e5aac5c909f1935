import type { Awaitable } from '../../core/async.ts';
import type { RecordKind, StoredRecord } from '../../domain/records/record.ts';
import type { ConsumerSettings, ConsumerStart } from './consumer.ts';

/** Names that operators may use; those of the server's own consumers never match. */
export const consumerNamePattern = /^[A-Za-z0-9_-]{1,64}$/;

/** Cursor, lag and lease of a consumer in the log of one shard. */
export interface ConsumerShardStatus {
  shard: number;
  position: number;
  /** Positions of the log, of all fleets, not done yet. */
  behind: number;
  /** Age of the record at the position; 0 where there is none. */
  secondsBehind: number;
  /** Positions trimmed from the log before they were read. */
  lost: number;
  /** The batch that is leased now. */
  lease: { readonly worker: string; readonly records: number; readonly expiresAtMs: number } | undefined;
}

export interface ConsumerStatus {
  name: string;
  createdAtMs: number;
  kinds: readonly RecordKind[];
  schemas: readonly string[];
  leaseSeconds: number;
  /** False: paused. */
  enabled: boolean;
  shards: readonly ConsumerShardStatus[];
}

export interface ConsumerBatch {
  id: string;
  shard: number;
  records: readonly StoredRecord[];
  expiresAtMs: number;
  /** Returns false if its lease is no longer held. Never throws: the lease ends by itself then. */
  release(): Awaitable<boolean>;
}

export interface ConsumerFetch {
  recordsMax: number;
  worker: string;
}

/** Consumers for the admin API. Every method but `list`, `all` and `put` throws ApiError consumer_not_found. */
export interface ConsumerService {
  /** Lists those of a fleet by name. */
  list(fleetId: string): Promise<ConsumerStatus[]>;
  /** Yields those of all fleets, a few per event loop turn, as there may be many. */
  all(): AsyncIterable<{ fleetId: string; name: string; shards: readonly ConsumerShardStatus[] }>;
  get(fleetId: string, name: string): Promise<ConsumerStatus>;
  /** An existing consumer keeps its cursors and absent settings. @throws ApiError limit_reached. */
  put(
    fleetId: string,
    name: string,
    settings: Partial<ConsumerSettings>,
    start: ConsumerStart,
  ): Promise<{ status: ConsumerStatus; isNew: boolean }>;
  /** Pauses or resumes it; a paused one keeps its cursors and leases no further batch. */
  change(fleetId: string, name: string, change: { enabled: boolean }): Promise<ConsumerStatus>;
  delete(fleetId: string, name: string): Promise<void>;
  /**
   * Returns undefined if there were no records until the abort, `paused` if the consumer is.
   * @throws ApiError unavailable if too many wait.
   */
  fetch(
    fleetId: string,
    name: string,
    fetch: ConsumerFetch,
    signal: AbortSignal,
  ): Promise<ConsumerBatch | 'paused' | undefined>;
  /** Returns the number of records once durable. @throws ApiError batch_not_found, unavailable. */
  acknowledge(fleetId: string, name: string, batchId: string): Promise<number>;
  /** Makes the batch available again at once. @throws ApiError batch_not_found. */
  release(fleetId: string, name: string, batchId: string): Promise<number>;
}
