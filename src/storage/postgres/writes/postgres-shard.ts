import { logRecordBytes } from '../../../domain/records/record.ts';
import type { Shard } from '../../../domain/shard.ts';
import { isReading, replyBytes, type Sync, type SyncOutcome } from '../../../domain/sync/sync.ts';
import type { Database } from '../connection/database.ts';
import { PostgresDevices } from '../devices/postgres-devices.ts';
import type { PostgresLog } from '../log/postgres-log.ts';
import { PostgresDeadLetters } from '../mail/postgres-dead-letters.ts';
import { PostgresDedupe } from '../mail/postgres-dedupe.ts';
import { PostgresMail } from '../mail/postgres-mail.ts';
import { type DatabaseSizes, databaseSizesOf, logBytesOf, mailBytesInDatabase } from '../schema/sizes.ts';
import type { PostgresStreams } from '../streams/postgres-streams.ts';
import type { Sweeper } from './sweeper.ts';
import type { Writer } from './writer.ts';

/** Parts of a shard, as `open-shard.ts` opens them. */
interface ShardParts {
  database: Database;
  writer: Writer;
  log: PostgresLog;
  streams: PostgresStreams;
  sweeper: Sweeper;
}

/** A `Shard` on a PostgreSQL database, the same for each thread of each node: nobody owns it. */
export class PostgresShard implements Shard {
  readonly devices: PostgresDevices;
  readonly mail: PostgresMail;
  readonly deadLetters: PostgresDeadLetters;
  readonly log: PostgresLog;
  readonly streams: PostgresStreams;
  readonly dedupe: PostgresDedupe;
  readonly #database: Database;
  readonly #writer: Writer;
  readonly #sweeper: Sweeper;

  constructor({ database, writer, log, streams, sweeper }: ShardParts) {
    this.devices = new PostgresDevices(database, streams.presence, writer);
    this.mail = new PostgresMail(database, writer);
    this.deadLetters = new PostgresDeadLetters(database, writer);
    this.log = log;
    this.streams = streams;
    this.dedupe = new PostgresDedupe(database, writer);
    this.#database = database;
    this.#writer = writer;
    this.#sweeper = sweeper;
  }

  accepts(): boolean {
    return this.#writer.accepts();
  }

  async sync(sync: Sync): Promise<SyncOutcome> {
    const { device, records, queue, settlements, mail } = sync;
    // Where a queue stands is rarely asked for alone: not worth a statement of its own.
    if (queue === undefined && isReading(sync)) {
      return { queue, settled: [], mailbox: await this.mail.front(device, mail) };
    }
    const bytes = records.reduce((sum, record) => sum + (record ? logRecordBytes(record) : 0), 0);
    return this.#writer.write('sync', sync, bytes + replyBytes(settlements));
  }

  /** Sizes of the database. @throws ApiError unavailable */
  sizes(): Promise<DatabaseSizes> {
    return databaseSizesOf(this.#database);
  }

  /** Record bytes of limited fleets. @throws ApiError unavailable */
  logBytes(): Promise<Map<string, number>> {
    return logBytesOf(this.#database);
  }

  /** Bytes of the waiting mail of all fleets. @throws ApiError unavailable */
  mailBytes(): Promise<Map<string, number>> {
    return mailBytesInDatabase(this.#database);
  }

  /** Refuses further writes; settles when the queued ones are durable or refused. */
  async close(): Promise<void> {
    await this.#sweeper.close();
    await this.#writer.close();
    await this.streams.close();
    await this.#database.close();
  }
}
