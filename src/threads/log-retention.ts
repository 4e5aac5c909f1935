import type { Fleet } from '../declarations/fleet.ts';
import type { FleetRetention, LogRetention } from '../domain/log-retention.ts';
import type { ThreadConfig } from './config.ts';

/** Retention of the log of one of `shards` shards, read at each call, from the fleets and the configuration. */
export function retentionOf(
  fleets: { all(): Iterable<Fleet> },
  shards: number,
  { settings }: Pick<ThreadConfig, 'settings'>,
  /** Limit where the configuration has none; 0 for no limit. */
  logBytesByDisk: number,
): () => LogRetention {
  return () => {
    const own = new Map<string, FleetRetention>();
    const { logBytesPerFleetMax: perFleetMax } = settings.current;
    for (const { fleetId, logRetentionSeconds: ttlSeconds, logBytesMax = 0 } of fleets.all()) {
      const limits = [logBytesMax, perFleetMax].filter((limit) => limit > 0);
      if (ttlSeconds === undefined && limits.length === 0) continue;
      own.set(fleetId, {
        ...(ttlSeconds !== undefined && { ttlSeconds }),
        // A fleet's own tokens set its limit: never beyond that of all.
        ...(limits.length > 0 && { bytesMax: Math.min(...limits) }),
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
