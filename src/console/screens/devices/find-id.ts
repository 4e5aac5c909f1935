import type { DeviceDocument } from '../../../contract/device.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { call } from '../../server/client.ts';

/** Devices whose id begins with one of the texts, those of the first one first; each costs a look into the index. */
export async function devicesOfIds(
  fleetId: string,
  beginnings: readonly string[],
  limit: number,
  signal: AbortSignal,
): Promise<DeviceDocument[]> {
  const pages = await Promise.all(
    beginnings.map((beginning) =>
      call('GET', pathTo('/fleets/{fleet_id}/devices', { fleet_id: fleetId }), {
        query: { id_prefix: beginning, limit },
        signal,
      }),
    ),
  );
  return pages.flatMap(({ items }) => items);
}
