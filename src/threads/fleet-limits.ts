import { type Fleet, lowestLimit } from '../declarations/fleet.ts';
import type { FleetRetention, LogRetention } from '../domain/log-retention.ts';
import type { MailBytesMax } from '../domain/mail/mail-bytes.ts';
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
    for (const { fleetId, logRetentionSeconds: ttlSeconds, logBytesMax } of fleets.all()) {
      const bytesMax = lowestLimit(logBytesMax, perFleetMax);
      if (ttlSeconds === undefined && bytesMax === undefined) continue;
      own.set(fleetId, {
        ...(ttlSeconds !== undefined && { ttlSeconds }),
        ...(bytesMax !== undefined && { bytesMax }),
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

/** What a fleet's mail may have in one shard, read at each call. `elsewhere`: its bytes in all others. */
export function mailBytesMaxOf(
  fleets: { get(fleetId: string): Fleet | undefined },
  { settings }: Pick<ThreadConfig, 'settings'>,
  elsewhere: (fleetId: string) => number,
): MailBytesMax {
  return (fleetId) => {
    const max = lowestLimit(fleets.get(fleetId)?.mailBytesMax, settings.current.mailBytesPerFleetMax);
    return max === undefined ? Number.POSITIVE_INFINITY : max - elsewhere(fleetId);
  };
}

/** How long a sum over the other shards is taken for true: so long they may go beyond the limit, each for itself. */
const knownMs = 1_000;

/** Asks for the bytes of a fleet's mail in other shards once a second. */
export function onceASecond(read: (fleetId: string) => number): (fleetId: string) => number {
  const known = new Map<string, { bytes: number; untilMs: number }>();
  return (fleetId) => {
    const nowMs = performance.now();
    const before = known.get(fleetId);
    if (before !== undefined && nowMs < before.untilMs) return before.bytes;
    const bytes = read(fleetId);
    known.set(fleetId, { bytes, untilMs: nowMs + knownMs });
    return bytes;
  };
}
