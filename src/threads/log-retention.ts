import type { Fleets } from '../declarations/fleet.ts';
import type { FleetRetention, LogRetention } from '../domain/log-retention.ts';
import type { ThreadConfig } from './config.ts';

/** Retention of the log of one of `shards` shards, read at each call, from the fleets and the configuration. */
export function retentionOf(
  fleets: Fleets,
  shards: number,
  { settings }: Pick<ThreadConfig, 'settings'>,
  /** Limit where the configuration has none; 0 for no limit. */
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
    const bytesMax = Math.ceil((settings.current.logBytesMax || logBytesByDisk) / shards);
    return { ttlSeconds: settings.current.logRetentionSeconds, bytesMax, fleets: own };
  };
}

/** Adds up the bytes per limited fleet over the logs of several shards. */
export function sumOfBytes(logs: readonly ReadonlyMap<string, number>[]): Map<string, number> {
  const sum = new Map<string, number>();
  for (const log of logs) {
    for (const [fleetId, bytes] of log) sum.set(fleetId, (sum.get(fleetId) ?? 0) + bytes);
  }
  return sum;
}
