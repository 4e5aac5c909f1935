import { SingleFlight } from '../core/async.ts';
import type { DeviceKey } from '../core/identity.ts';
import type { Log } from '../core/telemetry/log.ts';
import type { CommitMetrics, LetterMetrics } from '../core/telemetry/worker-metrics.ts';
import type { Fleets } from '../declarations/fleet.ts';
import type { Hold } from '../domain/hold.ts';
import { shardFor } from '../domain/placement.ts';
import type { DatabaseSizes } from '../storage/postgres/schema/sizes.ts';
import { openPostgresShard } from '../storage/postgres/writes/open-shard.ts';
import type { PostgresShard } from '../storage/postgres/writes/postgres-shard.ts';
import type { ThreadConfig } from './config.ts';
import { mailBytesMaxOf, retentionOf, sumOfBytes } from './fleet-limits.ts';
import type { MainShards, ShardProblem } from './main-shards.ts';

/** Interval for reading the sizes of databases. */
const pollMilliseconds = 10_000;

export interface PostgresShardsOptions {
  /** One per database, in the order of the configuration, which places devices. */
  urls: readonly string[];
  config: ThreadConfig;
  fleets: Fleets;
  hold: Hold;
  metrics: CommitMetrics & LetterMetrics;
  log: Log;
}

/** All databases of `store`, on one thread of this node. */
export class PostgresShards implements MainShards {
  readonly all: readonly PostgresShard[];
  readonly #log: Log;
  #sizes: readonly DatabaseSizes[] = [];
  /** Record bytes of limited fleets, per database. */
  #logBytes: readonly ReadonlyMap<string, number>[] = [];
  /** Bytes of the waiting mail of fleets, likewise; read where there are several. */
  #mailBytes: readonly ReadonlyMap<string, number>[] = [];
  #problems: readonly ShardProblem[] = [];
  readonly #timer: NodeJS.Timeout;
  readonly #polling = new SingleFlight(() => this.#pollOrReport());

  private constructor(all: readonly PostgresShard[], log: Log) {
    this.all = all;
    this.#log = log;
    this.#timer = setInterval(() => void this.#polling.run(), pollMilliseconds);
  }

  /** @throws OperatorError for tables of another version, ApiError unavailable */
  static async open(options: PostgresShardsOptions): Promise<PostgresShards> {
    const { urls, config, fleets, hold, metrics, log } = options;
    const opened: PostgresShard[] = [];
    let shards: PostgresShards | undefined;
    try {
      for (const [shard, url] of urls.entries()) {
        const own = {
          ...config,
          url,
          identity: { index: shard, databases: urls.length },
          connectionsMax: config.databaseConnectionsMax,
          timeoutMilliseconds: config.databaseTimeoutMilliseconds,
          keepAliveSeconds: config.streamKeepAliveSeconds,
          retention: {
            retention: retentionOf(fleets, urls.length, config, 0),
            bytesElsewhere: () => shards?.bytesElsewhere(shard) ?? new Map(),
          },
          mailBytesMax: mailBytesMaxOf(
            fleets,
            config,
            (fleetId) => shards?.mailBytesElsewhere(shard, fleetId) ?? 0,
          ),
          hold,
          metrics,
          log,
        };
        opened.push(await openPostgresShard(own));
      }
      shards = new PostgresShards(opened, log);
      await shards.#poll();
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

  /** Record bytes of limited fleets in all other databases, up to one poll interval old. */
  bytesElsewhere(than: number): Map<string, number> {
    return sumOfBytes(this.#logBytes.filter((_, shard) => shard !== than));
  }

  /** Bytes of a fleet's waiting mail in all other databases, up to one poll interval old. */
  mailBytesElsewhere(than: number, fleetId: string): number {
    return this.#mailBytes.reduce(
      (sum, bytes, shard) => (shard === than ? sum : sum + (bytes.get(fleetId) ?? 0)),
      0,
    );
  }

  /** Up to one poll interval old. */
  sizes(): readonly DatabaseSizes[] {
    return this.#sizes;
  }

  devicesOf(shard: number): number {
    return this.#sizes[shard]?.devices ?? 0;
  }

  connectedOf(shard: number): number {
    return this.#sizes[shard]?.connected ?? 0;
  }

  diskFreeBytes(): undefined {}

  problems(): readonly ShardProblem[] {
    return this.#problems;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#polling.settled();
    for (const shard of this.all) await shard.close();
  }

  async #pollOrReport(): Promise<void> {
    try {
      await this.#poll();
      this.#problems = [];
    } catch (error) {
      this.#log.warn({ err: error }, 'a database of the store is unavailable');
      this.#problems = [{ reason: 'store_refuses', msg: 'A database of the store is unavailable.' }];
    }
  }

  async #poll(): Promise<void> {
    this.#sizes = await Promise.all(this.all.map((shard) => shard.sizes()));
    this.#logBytes = await Promise.all(this.all.map((shard) => shard.logBytes()));
    if (this.all.length === 1) return;
    this.#mailBytes = await Promise.all(this.all.map((shard) => shard.mailBytes()));
  }
}
