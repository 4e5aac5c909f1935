import { hash } from 'node:crypto';

/** Retention overrides of one fleet. */
export interface FleetRetention {
  ttlSeconds?: number;
  /** Bytes of its records, all shards together. */
  bytesMax?: number;
}

/** Limits on age and size of a shard's log. */
export interface LogRetention {
  /** Lifetime for fleets without their own. */
  ttlSeconds: number;
  /** Size on disk of this shard's whole log; 0 for no limit. */
  bytesMax: number;
  /** Fleets with overrides. */
  fleets: ReadonlyMap<string, FleetRetention>;
}

/** Provides a shard with its retention, so that it need not know the registry. */
export interface RetentionSource {
  /** The current retention; called once a minute. */
  retention(): LogRetention;
  /** Bytes of limited fleets' records in all other shards together, as last counted. */
  bytesElsewhere(): ReadonlyMap<string, number>;
}

/** Maximum distinct TTLs: each costs a scan of the log, so more of them are rounded up to powers of two. */
const ttlsMax = 16;

/** The TTLs to trim by, one scan each, longest first. */
export function ttlsOf({ ttlSeconds, fleets }: LogRetention): number[] {
  const all = new Set([ttlSeconds]);
  for (const fleet of fleets.values()) if (fleet.ttlSeconds !== undefined) all.add(fleet.ttlSeconds);
  const ttls = all.size <= ttlsMax ? all : new Set([...all].map((ttl) => 2 ** Math.ceil(Math.log2(ttl))));
  return [...ttls].sort((a, b) => b - a);
}

/** Fingerprint of what requires a new scan of the log; merely raising or lowering a limit does not. */
export function fingerprintOf({ ttlSeconds, fleets }: LogRetention): string {
  const parts = [...fleets].map(
    ([fleetId, fleet]) => `${fleetId} ${fleet.ttlSeconds ?? ''} ${fleet.bytesMax !== undefined}`,
  );
  return hash('sha1', [String(ttlSeconds), ...parts.sort()].join('\n'), 'base64');
}
