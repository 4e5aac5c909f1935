import { pathTo } from '../../contract/routes/path.ts';
import { call } from '../server/client.ts';

/** Fleets that are looked into: with more, one is chosen by hand anyway. */
const lookedMax = 8;

/** The fleet to begin with, where none was looked at before: the one with the most devices that call, or with any. */
export async function firstFleet(ids: readonly string[]): Promise<string | undefined> {
  const [first] = ids;
  if (ids.length < 2) return first;
  const looked = await Promise.all(
    ids.slice(0, lookedMax).map(async (id) => {
      const path = pathTo('/fleets/{fleet_id}/counts', { fleet_id: id });
      // One that cannot be counted is not the one to begin with.
      const counts = await call('GET', path).catch(() => undefined);
      return {
        id,
        active: Math.max(counts?.active ?? 0, counts?.connected ?? 0),
        devices: counts?.devices ?? 0,
      };
    }),
  );
  const [best] = looked.sort((a, b) => b.active - a.active || b.devices - a.devices);
  return best?.id ?? first;
}
