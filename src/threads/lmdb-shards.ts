import type { DeviceKey } from '../core/identity.ts';
import type { Log } from '../core/telemetry/log.ts';
import { shardFor } from '../domain/placement.ts';
import type { Shard } from '../domain/shard.ts';
import { Environment } from '../storage/lmdb/environment/environment.ts';
import { tableNames } from '../storage/lmdb/layout/tables.ts';
import { LmdbShard } from '../storage/lmdb/shard/lmdb-shard.ts';
import type { ShardWriter } from '../storage/lmdb/shard/write-queue.ts';
import type { ThreadConfig } from './config.ts';
import type { MainShards, ShardProblem } from './main-shards.ts';
import type { Channel } from './relay/channel.ts';
import type { SharedCounters } from './relay/messages.ts';
import { RemoteShardWriter } from './relay/remote-shard-writer.ts';
import { counterCellOf, versionsOf } from './shared-counters.ts';

/** LMDB reader slots beyond one per thread, for snapshots that are held, as for a backup. */
const spareReaders = 32;

export function openShardEnvironment(
  path: string,
  shard: number,
  shards: number,
  config: ThreadConfig,
  counters: SharedCounters,
  log?: Log,
): Environment {
  return new Environment({
    path,
    tables: tableNames,
    mapBytesMax: config.mapBytesMax,
    diskFreeBytesMin: config.diskFreeBytesMin,
    readersMax: shards + spareReaders,
    commits: counterCellOf(counters.commits, shard),
    log,
  });
}

/** All shards on one thread: reads in place, writes to the owner. */
export class LmdbShards implements MainShards {
  readonly all: readonly Shard[];
  readonly #environments: readonly Environment[];

  constructor(
    environments: readonly Environment[],
    owners: readonly ShardWriter[],
    config: ThreadConfig,
    counters: SharedCounters,
  ) {
    this.#environments = environments;
    this.all = owners.map((owner, index) => {
      const environment = environments[index];
      if (environment === undefined) throw new Error('every shard has an environment');
      return new LmdbShard({
        environment,
        versions: versionsOf(counters, index),
        owner,
        depth: {
          writes: counterCellOf(counters.depths, index),
          bytes: counterCellOf(counters.depthBytes, index),
        },
        settings: config.settings,
      });
    });
  }

  of(device: DeviceKey): Shard {
    return shardFor(this.all, device);
  }

  sizes(): { bytes: number; logBytes: number; devices: number; mails: number }[] {
    return this.#environments.map((environment) => {
      environment.refresh();
      const sizes = tableNames.map((name) => environment.sizeOf(name).bytes);
      return {
        bytes: sizes.reduce((sum, bytes) => sum + bytes, 0),
        logBytes: environment.sizeOf('log').bytes,
        devices: environment.sizeOf('devices').records,
        mails: environment.sizeOf('mail').records,
      };
    });
  }

  connectedOf(): undefined {}

  problems(): readonly ShardProblem[] {
    if (this.#environments.every((environment) => environment.hasDiskToGrow())) return [];
    return [{ reason: 'disk_full', msg: 'The disk of the data folder is full (diskFreeBytesMin).' }];
  }

  diskFreeBytes(): number | undefined {
    return this.#environments[0]?.diskFreeBytes();
  }

  /** Number of devices, as LMDB counts them. */
  devicesOf(shard: number): number {
    const environment = this.#environments[shard];
    environment?.refresh();
    return environment?.sizeOf('devices').records ?? 0;
  }

  async close(): Promise<void> {
    for (const environment of this.#environments) await environment.close();
  }
}

/** Opens all shards on the main thread: reads in place, writes to the owner at the other end of the channel. */
export function openLmdbShards(
  shardFolders: readonly string[],
  owners: readonly Channel[],
  config: ThreadConfig,
  counters: SharedCounters,
): LmdbShards {
  const environments = shardFolders.map((path, shard) =>
    openShardEnvironment(path, shard, shardFolders.length, config, counters),
  );
  return new LmdbShards(
    environments,
    owners.map((channel) => new RemoteShardWriter(channel)),
    config,
    counters,
  );
}
