import type { Log } from '../../../core/telemetry/log.ts';
import type { CommitMetrics, LetterMetrics } from '../../../core/telemetry/worker-metrics.ts';
import type { IdempotencyLimits } from '../../../domain/idempotency.ts';
import type { RetentionSource } from '../../../domain/log-retention.ts';
import { Database } from '../connection/database.ts';
import { deviceOperations, exclusiveDeviceOperations } from '../devices/device-operations.ts';
import { DeviceReads } from '../devices/device-reads.ts';
import { StreamPresence } from '../devices/presence.ts';
import { RecordReads } from '../log/record-reads.ts';
import { RecordTrimmer } from '../log/record-trimmer.ts';
import { keepKeys } from '../mail/key-claims.ts';
import {
  exclusiveMailOperations,
  ingestOperations,
  type MailOptions,
  mailOperations,
} from '../mail/mail-operations.ts';
import { MailReads } from '../mail/mail-reads.ts';
import { checkVersion } from '../schema/migrate.ts';
import { checkShardIdentity, type ShardIdentity } from '../schema/shard-identity.ts';
import { Streams } from '../streams/streams.ts';
import { PostgresShard } from './postgres-shard.ts';
import { Sweeper } from './sweeper.ts';
import { Writer } from './writer.ts';

export type PostgresShardOptions = MailOptions &
  IdempotencyLimits & {
    /** `postgres://…`, as libpq reads it. */
    url: string;
    /** Where it is known which one of the store it is, it is held to that. */
    place?: ShardIdentity;
    /** Of this thread to this database, besides the one that listens. */
    connectionsMax: number;
    /** What each wait for the database may last. */
    timeoutMilliseconds: number;
    shardQueueMax: number;
    shardQueueBytesMax: number;
    streamsPerDeviceMax: number;
    /** What a notification that is lost can cost an event stream. */
    keepAliveSeconds: number;
    /** Between two looks for what is due. */
    sweepMilliseconds?: number;
    /** What is kept of the log, and for how long, now. */
    retention: RetentionSource;
    metrics: CommitMetrics & LetterMetrics;
    log: Log;
  };

/** Of the connections, those that write; a read never waits for all of them. */
const writingShare = 0.5;

/**
 * The shard of one database, for one thread. Its tables are there (`migrate`).
 * @throws OperatorError for tables of another version. @throws ApiError unavailable
 */
export async function openPostgresShard(options: PostgresShardOptions): Promise<PostgresShard> {
  const { connectionsMax, log } = options;
  const database = new Database(options);
  const records = new RecordReads(database);
  const trimmer = new RecordTrimmer(database, records, options.retention);
  try {
    await checkVersion(database);
    if (options.place !== undefined) await checkShardIdentity(database, options.place);
    // Without the partitions of today nothing could be stored.
    await keepKeys(database, options);
    await trimmer.prepare();
  } catch (error) {
    await database.close();
    throw error;
  }
  const writer = new Writer({
    database,
    operations: { ...deviceOperations, ...ingestOperations(options), ...mailOperations(options) },
    errands: { ...exclusiveDeviceOperations, ...exclusiveMailOperations(options) },
    lanes: Math.max(1, Math.floor(connectionsMax * writingShare)),
    limits: options,
    metrics: options.metrics,
    log,
    onCommit({ effects: { droppedLetters } }) {
      if (droppedLetters > 0) options.metrics.lettersDropped(droppedLetters);
    },
  });
  const streams = new Streams({
    database,
    perDeviceMax: options.streamsPerDeviceMax,
    checkMilliseconds: options.keepAliveSeconds * 1_000,
    log,
  });
  const sweeper = new Sweeper({
    database,
    writer,
    holder: streams.node,
    intervalMilliseconds: options.sweepMilliseconds,
    log,
    async onFullSweep() {
      await keepKeys(database, options);
      await trimmer.pass();
    },
  });
  return new PostgresShard({
    database,
    writer,
    devices: new DeviceReads(database),
    mail: new MailReads(database),
    records,
    streams,
    sweeper,
    presence: new StreamPresence(database),
  });
}
