import type { Shard } from '../../../domain/shard.ts';
import type { ShardStreams } from '../../../domain/shard-streams.ts';
import type { StorageConfig } from '../../config.ts';
import type { DeviceVersions } from '../devices/device-versions.ts';
import { LmdbDevices } from '../devices/lmdb-devices.ts';
import type { Environment } from '../environment/environment.ts';
import { openTables } from '../layout/tables.ts';
import { LmdbLog } from '../log/lmdb-log.ts';
import { LmdbDeadLetters } from '../mail/lmdb-dead-letters.ts';
import { LmdbDedupe } from '../mail/lmdb-dedupe.ts';
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

  constructor({ environment, versions, owner, depth, settings }: LmdbShardOptions) {
    const tables = openTables(environment);
    const queue = new WriteQueue(owner, depth, settings);
    this.#queue = queue;
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
}
