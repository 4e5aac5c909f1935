import { createLog } from '../../../src/core/telemetry/log.ts';
import { WorkerMetrics } from '../../../src/core/telemetry/worker-metrics.ts';
import {
  openPostgresShard,
  type PostgresShardOptions,
} from '../../../src/storage/postgres/writes/open-shard.ts';
import type { PostgresShard } from '../../../src/storage/postgres/writes/postgres-shard.ts';
import { createServed, dropDatabase } from '../../harness/postgres/postgres.ts';
import { configWith } from '../../harness/server/config.ts';
import { sweepMilliseconds } from '../../harness/storage/shard.ts';
import type { Engine, EngineOptions, OpenEngine } from './engine.ts';

const log = createLog('silent');

/** Options of one node, as the config has them by default. */
export function optionsOf(url: string, changed: EngineOptions = {}): PostgresShardOptions {
  const config = configWith(changed);
  return {
    ...config,
    ...(changed.mailBytesMax && { mailBytesMax: changed.mailBytesMax }),
    sweepMilliseconds: changed.sweepMilliseconds ?? sweepMilliseconds,
    url,
    connectionsMax: 4,
    timeoutMilliseconds: 10_000,
    // Lost connections are looked for sooner than anybody gives up waiting for them.
    keepAliveSeconds: 1,
    retention: {
      retention: () => ({
        ttlSeconds: config.settings.current.logRetentionSeconds,
        bytesMax: 0,
        fleets: new Map(),
      }),
      bytesElsewhere: () => new Map(),
    },
    metrics: new WorkerMetrics([], WorkerMetrics.allocate([])),
    log,
  };
}

/** Two nodes on one database. */
class OpenPostgres implements OpenEngine {
  readonly #url: string;
  #options: EngineOptions;
  #nodes: readonly [PostgresShard, PostgresShard] | undefined;
  #last: readonly [PostgresShard, PostgresShard];

  private constructor(url: string, options: EngineOptions, nodes: [PostgresShard, PostgresShard]) {
    this.#url = url;
    this.#options = options;
    this.#nodes = nodes;
    this.#last = nodes;
  }

  static async open(options: EngineOptions): Promise<OpenPostgres> {
    const url = await createServed();
    return new OpenPostgres(url, options, await openNodes(url, options));
  }

  get shard() {
    return this.#last[0];
  }

  get elsewhere() {
    return this.#last[1];
  }

  async reopen(changed: EngineOptions = {}): Promise<void> {
    await this.close();
    this.#options = { ...this.#options, ...changed };
    this.#nodes = await openNodes(this.#url, this.#options);
    this.#last = this.#nodes;
  }

  async close(): Promise<void> {
    const nodes = this.#nodes ?? [];
    this.#nodes = undefined;
    for (const node of nodes) await node.close();
  }

  remove(): Promise<void> {
    return dropDatabase(this.#url);
  }
}

async function openNodes(url: string, options: EngineOptions): Promise<[PostgresShard, PostgresShard]> {
  const of = optionsOf(url, options);
  return [await openPostgresShard(of), await openPostgresShard(of)];
}

/** PostgreSQL with two nodes on it. */
export const postgresEngine: Engine = {
  name: 'PostgreSQL',
  open: (options = {}) => OpenPostgres.open(options),
};
