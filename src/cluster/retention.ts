import type { Config } from '../core/config.ts';
import type { Fleets } from '../registry/fleet.ts';
import type { FleetRetention, RetentionSource } from '../shard/log-retention.ts';
import type { ShardReader } from '../shard/reader.ts';

/** What fleets and the configuration say of the log, for the owner of one shard; `others` are those it is not. */
export function retentionOf(
  fleets: Fleets,
  others: readonly ShardReader[],
  config: Pick<Config, 'logRetentionSeconds' | 'logBytesMax'>,
): RetentionSource {
  return {
    retention() {
      const own = new Map<string, FleetRetention>();
      for (const { fleetId, logRetentionSeconds, logBytesMax } of fleets.all()) {
        if (logRetentionSeconds === undefined && logBytesMax === undefined) continue;
        own.set(fleetId, {
          ...(logRetentionSeconds !== undefined && { lifeSeconds: logRetentionSeconds }),
          ...(logBytesMax !== undefined && { bytesMax: logBytesMax }),
        });
      }
      const bytesMax = Math.ceil(config.logBytesMax / (others.length + 1));
      return { lifeSeconds: config.logRetentionSeconds, bytesMax, fleets: own };
    },
    bytesElsewhere() {
      const sum = new Map<string, number>();
      for (const other of others) {
        for (const [fleetId, bytes] of other.logBytes()) sum.set(fleetId, (sum.get(fleetId) ?? 0) + bytes);
      }
      return sum;
    },
  };
}
