import type { Log } from '../core/telemetry/log.ts';
import type { WorkerMetrics } from '../core/telemetry/worker-metrics.ts';
import type { Fleets } from '../declarations/fleet.ts';
import type { FleetRetention, LogRetention } from '../domain/log-retention.ts';
import type { Completion } from '../domain/write.ts';
import type { ThreadConfig } from './config.ts';
import type { Channel } from './relay/channel.ts';
import type { Call, Notice, WorkerStart } from './relay/messages.ts';
import type { Shards } from './shards.ts';

/** What fleets and the configuration say of the log of one of so many shards, whenever it is asked. */
export function retentionOf(
  fleets: Fleets,
  shards: number,
  config: Pick<ThreadConfig, 'logRetentionSeconds' | 'logBytesMax'>,
  /** Where the configuration has none: 0 for no limit. */
  logBytesByDisk: number,
): () => LogRetention {
  return () => {
    const own = new Map<string, FleetRetention>();
    for (const { fleetId, logRetentionSeconds, logBytesMax } of fleets.all()) {
      if (logRetentionSeconds === undefined && logBytesMax === undefined) continue;
      own.set(fleetId, {
        ...(logRetentionSeconds !== undefined && { ttlSeconds: logRetentionSeconds }),
        ...(logBytesMax !== undefined && { bytesMax: logBytesMax }),
      });
    }
    const bytesMax = Math.ceil((config.logBytesMax || logBytesByDisk) / shards);
    return { ttlSeconds: config.logRetentionSeconds, bytesMax, fleets: own };
  };
}

/** Of limited fleets, in the logs of so many shards together. */
export function sumOfBytes(logs: readonly ReadonlyMap<string, number>[]): Map<string, number> {
  const sum = new Map<string, number>();
  for (const log of logs) {
    for (const [fleetId, bytes] of log) sum.set(fleetId, (sum.get(fleetId) ?? 0) + bytes);
  }
  return sum;
}

export interface WorkerShardsOptions {
  start: WorkerStart;
  config: ThreadConfig;
  fleets: Fleets;
  metrics: WorkerMetrics;
  log: Log;
}

/** The shards of a server as one worker thread has them, on either engine. */
export interface WorkerShards {
  shards: Pick<Shards, 'all' | 'of'>;
  /** What the main thread asks of the shard of this worker, and says of it. */
  serve(call: Call, completion: Completion<unknown>, channel: Channel): void;
  notice(notice: Notice, channel: Channel): void;
  /** Every worker has drained: nothing will be written any more. */
  close(): Promise<void>;
}
