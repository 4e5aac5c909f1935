import { randomBytes } from 'node:crypto';
import { allocateLockouts } from '../device-api/auth/lockouts.ts';
import { allocateConnections } from '../device-api/limits/connection-gate.ts';
import { allocateRates } from '../device-api/limits/request-rates.ts';
import { DeviceMarks } from '../domain/devices/device-marks.ts';
import { DeviceVersions, versionsBytes } from '../storage/lmdb/devices/device-versions.ts';
import type { SharedCounters } from './relay/messages.ts';
import { allocateWriteRelay } from './relay/ring.ts';
import { allocateHeartbeats } from './watchdog.ts';

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
