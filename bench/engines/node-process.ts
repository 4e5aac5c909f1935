import { createLog } from '../../src/core/telemetry/log.ts';
import { WorkerMetrics } from '../../src/core/telemetry/worker-metrics.ts';
import type { Shard } from '../../src/domain/shard.ts';
import { Database } from '../../src/storage/postgres/connection/database.ts';
import { migrate } from '../../src/storage/postgres/schema/migrate.ts';
import { openPostgresShard } from '../../src/storage/postgres/writes/open-shard.ts';
import { configWith } from '../../test/harness/server/config.ts';
import { sampleDevice } from '../micro/samples.ts';
import { openTemporaryShard } from '../micro/temporary-shard.ts';
import { type LoopOptions, loop } from './loops.ts';

/** Options of this process: the URL of its database, or none for a folder of LMDB; and the number of callers. */
export interface NodeOptions {
  url?: string;
  devices: number;
}

const { url, devices: count }: NodeOptions = JSON.parse(process.argv[2] ?? '{}');
const devices = Array.from({ length: count }, sampleDevice).map(({ device }) => device);
const shard = url === undefined ? (await openTemporaryShard(1)).shard : await openDatabase(url);
const taken = await shard.devices.create(devices);
if (taken !== undefined) throw new Error('a device was there before');
const keys = devices.map(({ device }) => device);

process.on('message', async (options: LoopOptions) => process.send?.(await loop(shard, keys, options)));
process.on('disconnect', () => process.exit());
process.send?.('ready');

async function openDatabase(of: string): Promise<Shard> {
  const config = configWith();
  const log = createLog('error');
  const timeoutMilliseconds = config.databaseTimeoutMilliseconds;
  const database = new Database({ url: of, connectionsMax: 1, timeoutMilliseconds, log });
  await migrate(database);
  await database.close();
  const retention = {
    ttlSeconds: config.settings.current.logRetentionSeconds,
    bytesMax: 0,
    fleets: new Map(),
  };
  return openPostgresShard({
    ...config,
    url: of,
    connectionsMax: config.databaseConnectionsMax,
    timeoutMilliseconds,
    keepAliveSeconds: config.streamKeepAliveSeconds,
    retention: { retention: () => retention, bytesElsewhere: () => new Map() },
    metrics: new WorkerMetrics([], WorkerMetrics.allocate([])),
    log,
  });
}
