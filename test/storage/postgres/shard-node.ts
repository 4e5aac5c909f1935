import { pino } from 'pino';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import { WorkerMetrics } from '../../../src/core/telemetry/worker-metrics.ts';
import { undescribed } from '../../../src/domain/devices/device-fields.ts';
import type { IngestOutcome } from '../../../src/domain/records/record.ts';
import { Database } from '../../../src/storage/postgres/connection/database.ts';
import { migrate } from '../../../src/storage/postgres/schema/migrate.ts';
import { openPostgresShard } from '../../../src/storage/postgres/writes/open-shard.ts';
import type { PostgresShard } from '../../../src/storage/postgres/writes/postgres-shard.ts';
import { configWith } from '../../harness/server/config.ts';

/** Time that each wait for the database may last here. */
const timeoutMilliseconds = 1_000;
export const device: DeviceKey = deviceKeyOf('FLEET001', 'DEVICE0001');

/** A whole shard as a node has it, with a device, and with all that it logs. */
export class ShardNode implements AsyncDisposable {
  readonly shard: PostgresShard;
  readonly lines: string[];

  private constructor(shard: PostgresShard, lines: string[]) {
    this.shard = shard;
    this.lines = lines;
  }

  /** Opens a node on a database that gets its tables, where it has none. What is logged goes to `lines`. */
  static async open(
    url: string,
    more: { shardQueueMax?: number } = {},
    lines: string[] = [],
  ): Promise<ShardNode> {
    const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
    const database = new Database({ url, connectionsMax: 1, timeoutMilliseconds, log });
    try {
      await migrate(database);
    } finally {
      await database.close();
    }
    const config = configWith(more);
    const retention = {
      ttlSeconds: config.settings.current.logRetentionSeconds,
      bytesMax: 0,
      fleets: new Map(),
    };
    const shard = await openPostgresShard({
      ...config,
      url,
      connectionsMax: 4,
      timeoutMilliseconds,
      keepAliveSeconds: 1,
      retention: { retention: () => retention, bytesElsewhere: () => new Map() },
      metrics: new WorkerMetrics([], WorkerMetrics.allocate([])),
      log,
    });
    const secretDigests = [Buffer.alloc(32, 1)];
    const given = { device, enabled: true, secretDigests, ...undescribed, createdAtMs: 1_000 };
    await shard.devices.put([{ device: given, change: undefined }]);
    return new ShardNode(shard, lines);
  }

  ingest(payload: Uint8Array = Buffer.from('{}')): Promise<IngestOutcome> {
    return this.shard.log.append({ device, kind: 'datapoint', schema: 'reading', payload });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.shard.close();
  }
}
