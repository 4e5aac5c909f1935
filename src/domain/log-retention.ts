import { hash } from 'node:crypto';

/** What one fleet has of its own. */
export interface FleetRetention {
  ttlSeconds?: number;
  /** Bytes of its records over all shards. */
  bytesMax?: number;
}

/** How long records stay in the log of a shard, and how much of it there may be. */
export interface LogRetention {
  /** Of fleets that have none of their own. */
  ttlSeconds: number;
  /** Of this shard's whole log on disk; 0 for no limit. */
  bytesMax: number;
  /** Those that have anything of their own. */
  fleets: ReadonlyMap<string, FleetRetention>;
}

/** Where a shard learns of it: the registry is none of its business. */
export interface RetentionSource {
  /** As it is now; asked once a minute. */
  retention(): LogRetention;
  /** Bytes of limited fleets' records in all other shards together, as those counted last. */
  bytesElsewhere(): ReadonlyMap<string, number>;
}

/** Looking through the log costs as much for every life: with more of them, they are looked for together. */
const livesMax = 16;

/** The lives that are to be looked for one after another, the longest first. */
export function livesOf({ ttlSeconds, fleets }: LogRetention): number[] {
  const all = new Set([ttlSeconds]);
  for (const fleet of fleets.values()) if (fleet.ttlSeconds !== undefined) all.add(fleet.ttlSeconds);
  const lives = all.size <= livesMax ? all : new Set([...all].map((life) => 2 ** Math.ceil(Math.log2(life))));
  return [...lives].sort((a, b) => b - a);
}

/** Of what decides which records must be looked at again: a limit that is raised or lowered does not. */
export function fingerprintOf({ ttlSeconds, fleets }: LogRetention): string {
  const parts = [...fleets].map(
    ([fleetId, fleet]) => `${fleetId} ${fleet.ttlSeconds ?? ''} ${fleet.bytesMax !== undefined}`,
  );
  return hash('sha1', [String(ttlSeconds), ...parts.sort()].join('\n'), 'base64');
}
