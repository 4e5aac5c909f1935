import { SingleFlight } from '../core/async.ts';
import type { DeviceKey } from '../core/identity.ts';
import type { Log } from '../core/telemetry/log.ts';
import type { CommitMetrics, LetterMetrics } from '../core/telemetry/worker-metrics.ts';
import type { Fleets } from '../declarations/fleet.ts';
import { shardFor } from '../domain/placement.ts';
import type { DatabaseSizes } from '../storage/postgres/schema/sizes.ts';
import { openPostgresShard } from '../storage/postgres/writes/open-shard.ts';
import type { PostgresShard } from '../storage/postgres/writes/postgres-shard.ts';
import type { ThreadConfig } from './config.ts';
import type { MainShards, ShardProblem } from './shards.ts';
import { retentionOf, sumOfBytes } from './worker-shards.ts';

/** What databases hold is asked this often. */
const lookMilliseconds = 10_000;

export interface DatabaseShardsOptions {
  /** Of each database, in the order of the configuration: devices are placed by it. */
  urls: readonly string[];
  config: ThreadConfig;
  fleets: Fleets;
  metrics: CommitMetrics & LetterMetrics;
  log: Log;
}

/** Every database of `store` as one thread of this node sees it. */
export class DatabaseShards implements MainShards {
  readonly all: readonly PostgresShard[];
  readonly #log: Log;
  #sizes: readonly DatabaseSizes[] = [];
  /** Of limited fleets' records, in each database. */
  #logBytes: readonly ReadonlyMap<string, number>[] = [];
  #problems: readonly ShardProblem[] = [];
  readonly #timer: NodeJS.Timeout;
  readonly #looking = new SingleFlight(() => this.#lookOrSay());

  private constructor(all: readonly PostgresShard[], log: Log) {
    this.all = all;
    this.#log = log;
    this.#timer = setInterval(() => void this.#looking.run(), lookMilliseconds);
  }

  /** @throws OperatorError for tables of another version, ApiError unavailable. */
  static async open(options: DatabaseShardsOptions): Promise<DatabaseShards> {
    const { urls, config, fleets, metrics, log } = options;
    const opened: PostgresShard[] = [];
    let shards: DatabaseShards | undefined;
    try {
      for (const [shard, url] of urls.entries()) {
        const own = {
          url,
          place: { index: shard, databases: urls.length },
          connectionsMax: config.databaseConnectionsMax,
          timeoutMilliseconds: config.databaseTimeoutMilliseconds,
          keepAliveSeconds: config.streamKeepAliveSeconds,
          retention: {
            retention: retentionOf(fleets, urls.length, config, 0),
            bytesElsewhere: () => shards?.bytesElsewhere(shard) ?? new Map(),
          },
          metrics,
          log,
        };
        // Its limits are those of the configuration as they are at any time.
        opened.push(await openPostgresShard(Object.assign(Object.create(config) as ThreadConfig, own)));
      }
      shards = new DatabaseShards(opened, log);
      await shards.#lookNow();
      return shards;
    } catch (error) {
      if (shards !== undefined) clearInterval(shards.#timer);
      for (const shard of opened) await shard.close();
      throw error;
    }
  }

  of(device: DeviceKey): PostgresShard {
    return shardFor(this.all, device);
  }

  /** Of limited fleets, as they were a moment ago. */
  bytesElsewhere(than: number): Map<string, number> {
    return sumOfBytes(this.#logBytes.filter((_, shard) => shard !== than));
  }

  /** As they were a moment ago. */
  sizes(): readonly DatabaseSizes[] {
    return this.#sizes;
  }

  devicesOf(shard: number): number {
    return this.#sizes[shard]?.devices ?? 0;
  }

  connectedOf(shard: number): number {
    return this.#sizes[shard]?.connected ?? 0;
  }

  problems(): readonly ShardProblem[] {
    return this.#problems;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking.settled();
    for (const shard of this.all) await shard.close();
  }

  async #lookOrSay(): Promise<void> {
    try {
      await this.#lookNow();
      this.#problems = [];
    } catch (error) {
      this.#log.warn({ err: error }, 'a database of the store does not answer');
      this.#problems = [
        { reason: 'store_refuses', msg: 'A database of the store does not answer, or takes no question.' },
      ];
    }
  }

  async #lookNow(): Promise<void> {
    this.#sizes = await Promise.all(this.all.map((shard) => shard.sizes()));
    this.#logBytes = await Promise.all(this.all.map((shard) => shard.logBytes()));
  }
}
