import type { DeviceKey } from '../../../core/identity.ts';
import { deviceKeyOf } from '../../../core/identity.ts';
import type { ConnectedDevice, Presence } from '../../../domain/devices/device-query.ts';
import type { Database } from '../connection/database.ts';

const areOpen = `
  SELECT k.device FROM unnest($1::text[]) AS k (device)
  CROSS JOIN LATERAL (SELECT 1 FROM stream s WHERE s.device = k.device LIMIT 1) AS s`;
const ofFleet = `
  SELECT DISTINCT position, device FROM stream
  WHERE device > $1 AND device < $2 AND position > $3 ORDER BY position LIMIT $4`;
const count = 'SELECT count(DISTINCT device) AS count FROM stream WHERE device > $1 AND device < $2';

/** Which devices have open streams on any node, as recorded in the table `stream`. */
export class StreamPresence implements Presence {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async areConnected(devices: readonly DeviceKey[]): Promise<boolean[]> {
    const rows = await this.#database.query<{ device: DeviceKey }>(areOpen, [devices]);
    const open = new Set(rows.map(({ device }) => device));
    return devices.map((device) => open.has(device));
  }

  async connectedDevices(fleetId: string, after: string, limit: number): Promise<ConnectedDevice[]> {
    return this.#database.query<Pick<ConnectedDevice, keyof ConnectedDevice>>(ofFleet, [
      fleetId,
      lastOf(fleetId),
      after,
      limit,
    ]);
  }

  async connectedCount(fleetId: string): Promise<number> {
    const [row] = await this.#database.query<{ count: number }>(count, [fleetId, lastOf(fleetId)]);
    return row?.count ?? 0;
  }
}

/** Sorts behind every device of a fleet. */
function lastOf(fleetId: string): DeviceKey {
  return deviceKeyOf(fleetId, '~'.repeat(10));
}
