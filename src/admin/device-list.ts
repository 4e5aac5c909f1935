import { deviceIdOf } from '../core/identity.ts';
import type { DeviceStatus, Page, Shard } from '../shard/shard.ts';

/** What a shard is asked for beyond its even share, since shares are never quite even. */
const spareDevices = 16;

/**
 * A page of a fleet's devices in order of id, over all shards. No shard is asked for a whole page, of which it
 * holds only a part: in rounds, each gives its share, and what is sure to be in order is taken.
 */
export async function listDevices(
  shards: readonly Shard[],
  fleetId: string,
  after: string,
  limit: number,
): Promise<Page<DeviceStatus>> {
  const share = Math.ceil((limit + 1) / shards.length) + spareDevices;
  const found: DeviceStatus[] = [];
  let from = after;
  let complete = false;
  while (found.length <= limit && !complete) {
    const parts = await Promise.all(shards.map((shard) => shard.devices(fleetId, from, share)));
    // Past the end of a part that may go on, its shard may have devices that come first.
    const ends = parts.flatMap((part) => (part.length === share ? lastId(part) : []));
    const horizon = ends.sort(byText)[0];
    const known = parts.flat().filter(({ device }) => horizon === undefined || deviceIdOf(device) <= horizon);
    found.push(...known.sort((a, b) => byText(a.device, b.device)));
    complete = horizon === undefined;
    from = horizon ?? from;
  }
  const items = found.slice(0, limit);
  return { items, next: found.length > limit ? (lastId(items)[0] ?? null) : null };
}

/** The id of the last device, if there is any. */
function lastId(devices: readonly DeviceStatus[]): string[] {
  return devices.slice(-1).map(({ device }) => deviceIdOf(device));
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
