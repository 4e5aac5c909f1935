import type { Log } from '../../../core/telemetry/log.ts';
import type { CommitMetrics, LetterMetrics } from '../../../core/telemetry/worker-metrics.ts';
import { Hold } from '../../../domain/hold.ts';
import type { RetentionSource } from '../../../domain/log-retention.ts';
import type { StorageConfig } from '../../config.ts';
import { Database } from '../connection/database.ts';
import { deviceOperations, exclusiveDeviceOperations } from '../devices/device-operations.ts';
import { ingestOperations } from '../log/ingest.ts';
import { PostgresLog } from '../log/postgres-log.ts';
import { RecordTrimmer } from '../log/record-trimmer.ts';
import { syncOperations } from '../log/sync.ts';
import { maintainKeyPartitions } from '../mail/key-claims.ts';
import { exclusiveMailOperations, type MailOptions, mailOperations } from '../mail/mail-operations.ts';
import { countMailAgain } from '../mail/mail-recount.ts';
import { checkServable } from '../schema/migrate.ts';
import { checkShardIdentity, type ShardIdentity } from '../schema/shard-identity.ts';
import { PostgresStreams } from '../streams/postgres-streams.ts';
import { PostgresShard } from './postgres-shard.ts';
import { Sweeper } from './sweeper.ts';
import { Writer } from './writer.ts';

export type PostgresShardOptions = MailOptions & {
  settings: StorageConfig['settings'];
  url: string;
  /** Checked against the identity stored in the database, if given. */
  identity?: ShardIdentity;
  /** Connections of this thread to this database, besides the listener. */
  connectionsMax: number;
  /** Timeout for each wait for the database. */
  timeoutMilliseconds: number;
  /** Longest wait of a busy thread for more writes after a commit. */
  commitDelayMilliseconds: number;
  streamsPerDeviceMax: number;
  /** Also the interval by which an event stream makes up for a lost notification. */
  keepAliveSeconds: number;
  /** Interval of the sweeper. */
  sweepMilliseconds?: number;
  /** While it holds, delayed mail stays delayed. Absent: nothing does. */
  hold?: Hold;
  /** Current retention of the log. */
  retention: RetentionSource;
  metrics: CommitMetrics & LetterMetrics;
  log: Log;
};

/** Share of the connections used by writes, so that a read never waits for all of them. */
const writingShare = 0.5;

/**
 * Opens the shard of one database for one thread. Its tables must exist (`migrate`).
 * @throws OperatorError for tables of another version, ApiError unavailable
 */
export async function openPostgresShard(options: PostgresShardOptions): Promise<PostgresShard> {
  const { connectionsMax, log } = options;
  const database = new Database(options);
  const writer = new Writer({
    database,
    operations: {
      ...deviceOperations,
      ...ingestOperations(options),
      ...syncOperations(options),
      ...mailOperations(options),
    },
    exclusiveOperations: { ...exclusiveDeviceOperations, ...exclusiveMailOperations(options) },
    concurrency: Math.max(1, Math.floor(connectionsMax * writingShare)),
    commitDelayMilliseconds: options.commitDelayMilliseconds,
    settings: options.settings,
    metrics: options.metrics,
    log,
    onCommit({ effects: { droppedLetters } }) {
      if (droppedLetters > 0) options.metrics.lettersDropped(droppedLetters);
    },
  });
  const recordLog = new PostgresLog(database, writer);
  const trimmer = new RecordTrimmer(database, recordLog, options.retention);
  try {
    await checkServable(database);
    if (options.identity !== undefined) await checkShardIdentity(database, options.identity);
    // Without current partitions nothing could be stored.
    await maintainKeyPartitions(database, options);
    await trimmer.prepare();
  } catch (error) {
    await database.close();
    throw error;
  }
  const streams = new PostgresStreams({
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
    hold: options.hold ?? new Hold(),
    log,
    async onFullSweep() {
      await maintainKeyPartitions(database, options);
      await trimmer.pass();
      await countMailAgain(database, log);
    },
  });
  return new PostgresShard({
    database,
    writer,
    log: recordLog,
    streams,
    sweeper,
  });
}
