import type { MailboxFront } from '../../../domain/mail/mail.ts';
import type { Shard } from '../../../domain/shard.ts';
import type { ShardStreams } from '../../../domain/shard-streams.ts';
import {
  isReading,
  replyBytes,
  type Sync,
  type SyncOutcome,
  type SyncWritten,
} from '../../../domain/sync/sync.ts';
import type { StorageConfig } from '../../config.ts';
import { LmdbDedupe } from '../dedupe/lmdb-dedupe.ts';
import type { DeviceVersions } from '../devices/device-versions.ts';
import { LmdbDevices } from '../devices/lmdb-devices.ts';
import type { Environment } from '../environment/environment.ts';
import { openTables, type Tables } from '../layout/tables.ts';
import { LmdbLog } from '../log/lmdb-log.ts';
import { encodeLogRecords } from '../log/log-record.ts';
import { readQueuePosition } from '../log/queue-positions.ts';
import { LmdbDeadLetters } from '../mail/lmdb-dead-letters.ts';
import { LmdbMail } from '../mail/lmdb-mail.ts';
import { type QueueDepth, type ShardWriter, WriteQueue } from './write-queue.ts';

export interface LmdbShardOptions {
  environment: Environment;
  versions: DeviceVersions;
  owner: ShardWriter;
  depth: QueueDepth;
  settings: StorageConfig['settings'];
}

/** The `Shard` on LMDB, the same on every thread: reads in place, writes through the `ShardWriter`. */
export class LmdbShard implements Shard {
  readonly devices: LmdbDevices;
  readonly mail: LmdbMail;
  readonly deadLetters: LmdbDeadLetters;
  readonly log: LmdbLog;
  readonly streams: ShardStreams;
  readonly dedupe: LmdbDedupe;
  readonly #queue: WriteQueue;
  readonly #environment: Environment;
  readonly #tables: Tables;

  constructor({ environment, versions, owner, depth, settings }: LmdbShardOptions) {
    const tables = openTables(environment);
    const queue = new WriteQueue(owner, depth, settings);
    this.#queue = queue;
    this.#environment = environment;
    this.#tables = tables;
    this.streams = owner;
    this.devices = new LmdbDevices({ environment, tables, versions, presence: owner.presence, queue });
    this.mail = new LmdbMail(environment, tables, queue);
    this.deadLetters = new LmdbDeadLetters(environment, tables, queue);
    this.log = new LmdbLog(environment, tables, queue);
    this.dedupe = new LmdbDedupe(environment, tables, queue);
  }

  accepts(): boolean {
    return this.#queue.accepts();
  }

  async sync(sync: Sync): Promise<SyncOutcome> {
    if (isReading(sync)) return { ...this.#read(sync), mailbox: this.#frontBehind(sync) };
    const { queue, settled } = await this.#write(sync);
    return { queue, settled, mailbox: this.#frontBehind(sync) };
  }

  /** A damaged mail must neither have what was written be sent again, nor hide where the queue of its device stands. */
  #frontBehind({ device, mail }: Sync): MailboxFront | undefined {
    try {
      return this.mail.front(device, mail);
    } catch {
      return undefined;
    }
  }

  #write({ device, records: accepted, queue, settlements }: Sync): Promise<SyncWritten> {
    const records = encodeLogRecords(device, accepted);
    const bytes = records.bytes.length + replyBytes(settlements);
    return this.#queue.write('sync', { device, records, queue, settlements }, bytes);
  }

  #read({ device, queue }: Sync): SyncWritten {
    if (queue === undefined) return { queue: undefined, settled: [] };
    this.#environment.refresh();
    return { queue: readQueuePosition(this.#tables, device, queue.name), settled: [] };
  }
}
