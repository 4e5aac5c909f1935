import { pino } from 'pino';
import { afterEach, beforeEach } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import { WorkerMetrics } from '../../../src/core/telemetry/worker-metrics.ts';
import type { Device } from '../../../src/domain/devices/device.ts';
import { undescribed } from '../../../src/domain/devices/device-fields.ts';
import type { LogRetention } from '../../../src/domain/log-retention.ts';
import type { Ingest, IngestOutcome, StoredRecord } from '../../../src/domain/records/record.ts';
import { Database } from '../../../src/storage/postgres/connection/database.ts';
import {
  deviceOperations,
  exclusiveDeviceOperations,
} from '../../../src/storage/postgres/devices/device-operations.ts';
import { PostgresDevices } from '../../../src/storage/postgres/devices/postgres-devices.ts';
import { ingestOperations } from '../../../src/storage/postgres/log/ingest.ts';
import { PostgresLog } from '../../../src/storage/postgres/log/postgres-log.ts';
import { RecordTrimmer } from '../../../src/storage/postgres/log/record-trimmer.ts';
import { maintainKeyPartitions } from '../../../src/storage/postgres/mail/key-claims.ts';
import {
  exclusiveMailOperations,
  mailOperations,
} from '../../../src/storage/postgres/mail/mail-operations.ts';
import { StreamPresence } from '../../../src/storage/postgres/streams/presence.ts';
import type { OperationType, OperationWrites } from '../../../src/storage/postgres/writes/operation.ts';
import { Writer } from '../../../src/storage/postgres/writes/writer.ts';
import { createMigrated, dropDatabase } from '../../harness/postgres/postgres.ts';
import { configWith } from '../../harness/server/config.ts';

export const fleetId = 'FLEET001';
export const deviceOf = (number: number, fleet = fleetId): DeviceKey =>
  deviceKeyOf(fleet, `DEVICE${String(number).padStart(4, '0')}`);

export function newDevice(device: DeviceKey, more: Partial<Device> = {}): Device {
  const plain = {
    enabled: true,
    secretDigests: [Buffer.alloc(32, 1)],
    ...undescribed,
    createdAtMs: 1_000,
  };
  return { device, ...plain, ...more };
}

const config = configWith({ shardQueueBytesMax: 1e9 });
const week: LogRetention = { ttlSeconds: 604_800, bytesMax: 0, fleets: new Map() };

/** Opens for each test two nodes on a new database. */
export function useNodes(): [DeviceNode, DeviceNode] {
  let url: string;
  // Filled before each test.
  const nodes = [] as unknown as [DeviceNode, DeviceNode];
  beforeEach(async () => {
    url = await createMigrated();
    nodes[0] = await DeviceNode.open(url);
    nodes[1] = await DeviceNode.open(url);
  });
  afterEach(async () => {
    for (const node of nodes) await node.close();
    await dropDatabase(url);
  });
  return nodes;
}

/** One node of several on a database: what it writes and reads of devices and records. */
export class DeviceNode {
  readonly database: Database;
  readonly reads: PostgresDevices;
  readonly records: PostgresLog;
  readonly trimmer: RecordTrimmer;
  /** Errors of the database. */
  readonly failures: string[] = [];
  retention = week;
  readonly limits = config;
  readonly #writer: Writer;

  private constructor(url: string) {
    const log = pino({ level: 'warn' }, { write: (line: string) => void this.failures.push(line) });
    this.database = new Database({ url, connectionsMax: 6, timeoutMilliseconds: 30_000, log });
    this.#writer = new Writer({
      database: this.database,
      operations: { ...deviceOperations, ...ingestOperations(config), ...mailOperations(config) },
      exclusiveOperations: { ...exclusiveDeviceOperations, ...exclusiveMailOperations(config) },
      concurrency: 3,
      commitDelayMilliseconds: config.commitDelayMilliseconds,
      settings: config.settings,
      metrics: new WorkerMetrics([], WorkerMetrics.allocate([])),
      log,
    });
    this.reads = new PostgresDevices(this.database, new StreamPresence(this.database), this.#writer);
    this.records = new PostgresLog(this.database, this.#writer);
    const source = { retention: () => this.retention, bytesElsewhere: () => new Map<string, number>() };
    this.trimmer = new RecordTrimmer(this.database, this.records, source);
  }

  static async open(url: string): Promise<DeviceNode> {
    const node = new DeviceNode(url);
    await maintainKeyPartitions(node.database, node.limits);
    await node.trimmer.prepare();
    return node;
  }

  write<T extends OperationType>(
    type: T,
    params: OperationWrites[T]['params'],
  ): Promise<OperationWrites[T]['answer']> {
    return this.#writer.write(type, params);
  }

  ingest(more: Partial<Ingest> = {}): Promise<IngestOutcome> {
    const plain = {
      device: deviceOf(1),
      kind: 'datapoint' as const,
      schema: 'reading',
      payload: Buffer.from('{}'),
    };
    return this.write('ingest', { ...plain, ...more });
  }

  /** All that the log has. */
  async log(): Promise<StoredRecord[]> {
    const records: StoredRecord[] = [];
    for (let at = 0; ; ) {
      const page = await this.records.read(at);
      records.push(...page.records);
      if (page.next === at) return records;
      at = page.next;
    }
  }

  async close(): Promise<void> {
    await this.#writer.close();
    await this.database.close();
  }
}
