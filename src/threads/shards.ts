import { randomBytes } from 'node:crypto';
import type { DeviceKey } from '../core/identity.ts';
import type { Log } from '../core/telemetry/log.ts';
import type { NotReady } from '../core/telemetry/readiness.ts';
import { allocateLockouts } from '../device-api/auth/lockouts.ts';
import { allocateConnections } from '../device-api/limits/connection-gate.ts';
import { allocateRates } from '../device-api/limits/request-rates.ts';
import { DeviceMarks } from '../domain/devices/device-marks.ts';
import { shardFor } from '../domain/placement.ts';
import type { Shard } from '../domain/shard.ts';
import { DeviceVersions, versionsBytes } from '../storage/lmdb/devices/device-versions.ts';
import { Environment } from '../storage/lmdb/environment/environment.ts';
import { tableNames } from '../storage/lmdb/layout/tables.ts';
import { LmdbShard } from '../storage/lmdb/shard/lmdb-shard.ts';
import type { ShardWriter } from '../storage/lmdb/shard/write-queue.ts';
import type { ThreadConfig } from './config.ts';
import type { Channel } from './relay/channel.ts';
import type { SharedCounters } from './relay/messages.ts';
import { RemoteShardWriter } from './relay/remote-shard-writer.ts';
import { allocateWriteRelay } from './relay/ring.ts';
import { allocateHeartbeats } from './watchdog.ts';

/** LMDB reader slots beyond one per thread, for snapshots that are held, as for a backup. */
const spareReaders = 32;

export function allocateCounters(shards: number): SharedCounters {
  const seed = randomBytes(16).toString('hex');
  return {
    commits: new SharedArrayBuffer(shards * Int32Array.BYTES_PER_ELEMENT),
    depths: new SharedArrayBuffer(shards * Int32Array.BYTES_PER_ELEMENT),
    depthBytes: new SharedArrayBuffer(shards * Int32Array.BYTES_PER_ELEMENT),
    versions: Array.from({ length: shards }, () => new SharedArrayBuffer(versionsBytes)),
    writeRelay: allocateWriteRelay(shards),
    heartbeats: allocateHeartbeats(shards),
    connections: allocateConnections(),
    lockouts: allocateLockouts(seed),
    rates: allocateRates(seed),
    refused: DeviceMarks.allocate(),
    watched: DeviceMarks.allocate(),
  };
}

/** One shard's cell of a counter shared by all threads. */
export function counterCellOf(buffer: SharedArrayBuffer, shard: number): Int32Array<SharedArrayBuffer> {
  return new Int32Array(buffer, shard * Int32Array.BYTES_PER_ELEMENT, 1);
}

export function versionsOf(counters: SharedCounters, shard: number): DeviceVersions {
  const buffer = counters.versions[shard];
  if (buffer === undefined) throw new Error('every shard has versions');
  return new DeviceVersions(new Int32Array(buffer));
}

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

/** Reason why devices are not fully served, whatever the shard. */
export type ShardProblem = NotReady & { reason: 'disk_full' | 'store_refuses' };

/** All shards on the main thread, on either engine. */
export interface MainShards {
  readonly all: readonly Shard[];
  of(device: DeviceKey): Shard;
  /** Sizes as the store counts them, at no cost. */
  sizes(): readonly { bytes: number; logBytes: number; devices: number; mails: number }[];
  devicesOf(shard: number): number;
  /** Devices with open event streams; undefined where the shard's worker counts them. */
  connectedOf(shard: number): number | undefined;
  problems(): readonly ShardProblem[];
  /** Undefined where it is not watched, or the databases' own affair. */
  diskFreeBytes(): number | undefined;
  close(): Promise<void>;
}

/** All shards on one thread: reads in place, writes to the owner. */
export class Shards implements MainShards {
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
export function openEmbedded(
  shardFolders: readonly string[],
  owners: readonly Channel[],
  config: ThreadConfig,
  counters: SharedCounters,
): Shards {
  const environments = shardFolders.map((path, shard) =>
    openShardEnvironment(path, shard, shardFolders.length, config, counters),
  );
  return new Shards(
    environments,
    owners.map((channel) => new RemoteShardWriter(channel)),
    config,
    counters,
  );
}
