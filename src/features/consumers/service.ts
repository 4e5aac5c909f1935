import type { RecordKind, StoredRecord } from '../../domain/records/record.ts';
import type { Awaitable } from '../../domain/shard.ts';
import type { ConsumerSettings, ConsumerStart } from '../records/consumer.ts';

/** Of the names that operators give; what the server makes for itself is called otherwise. */
export const consumerNamePattern = /^[A-Za-z0-9_-]{1,64}$/;

/** How a consumer is doing in the log of one shard. */
export interface ConsumerShardStatus {
  shard: number;
  position: number;
  /** Positions of the log, of all fleets, that are not done yet. */
  behind: number;
  /** Age of what stands at its position; 0 where nothing does. */
  secondsBehind: number;
  /** Positions that were trimmed from the log before it came there. */
  lost: number;
  /** A batch that somebody works on. */
  lease: { readonly worker: string; readonly records: number; readonly expiresAtMs: number } | undefined;
}

export interface ConsumerStatus {
  name: string;
  createdAtMs: number;
  kinds: readonly RecordKind[];
  schemas: readonly string[];
  leaseSeconds: number;
  shards: readonly ConsumerShardStatus[];
}

export interface ConsumerBatch {
  id: string;
  shard: number;
  records: readonly StoredRecord[];
  expiresAtMs: number;
  /** False when it is nobody's any more. Never fails: then its lease ends by itself. */
  release(): Awaitable<boolean>;
}

export interface ConsumerFetch {
  recordsMax: number;
  worker: string;
}

/** What the admin API asks of consumers. Every method but `list`, `all` and `put` throws ApiError consumer_not_found. */
export interface ConsumerService {
  /** Of a fleet, by name. */
  list(fleetId: string): Promise<ConsumerStatus[]>;
  /** Of all fleets, a few in each turn of the event loop: there may be many. */
  all(): AsyncIterable<{ fleetId: string; name: string; shards: readonly ConsumerShardStatus[] }>;
  get(fleetId: string, name: string): Promise<ConsumerStatus>;
  /** One that exists keeps its place and the settings that are not given. @throws ApiError limit_reached. */
  put(
    fleetId: string,
    name: string,
    settings: Partial<ConsumerSettings>,
    start: ConsumerStart,
  ): Promise<{ status: ConsumerStatus; isNew: boolean }>;
  delete(fleetId: string, name: string): Promise<void>;
  /** Undefined when there was nothing until the signal. @throws ApiError unavailable when too many wait. */
  fetch(
    fleetId: string,
    name: string,
    fetch: ConsumerFetch,
    signal: AbortSignal,
  ): Promise<ConsumerBatch | undefined>;
  /** Settles when it is on disk; answers of how many records. @throws ApiError batch_not_found. */
  acknowledge(fleetId: string, name: string, batchId: string): Promise<number>;
  /** Has it given again at once. @throws ApiError batch_not_found. */
  release(fleetId: string, name: string, batchId: string): Promise<number>;
}
