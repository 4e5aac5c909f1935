import type { FleetCounts } from '../../../domain/devices/device.ts';
import type { Session } from '../connection/database.ts';

const add = `
  INSERT INTO fleet_count AS t (fleet_id, devices, disabled)
  SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS k (fleet_id, devices, disabled)
  ORDER BY fleet_id
  ON CONFLICT (fleet_id) DO UPDATE
    SET devices = t.devices + excluded.devices, disabled = t.disabled + excluded.disabled`;

/**
 * What a transaction adds to the counts of fleets: added by the database, not read before, so that those who change
 * devices of one fleet wait for each other no longer than for the commit.
 */
export class FleetCountChanges {
  readonly #changes = new Map<string, FleetCounts>();

  add(fleetId: string, { devices, disabled }: FleetCounts): void {
    const sum = this.#changes.get(fleetId) ?? { devices: 0, disabled: 0 };
    this.#changes.set(fleetId, { devices: sum.devices + devices, disabled: sum.disabled + disabled });
  }

  store(session: Session): void {
    const changes = [...this.#changes].filter(([, { devices, disabled }]) => devices !== 0 || disabled !== 0);
    if (changes.length === 0) return;
    void session.query(add, [
      changes.map(([fleetId]) => fleetId),
      changes.map(([, { devices }]) => devices),
      changes.map(([, { disabled }]) => disabled),
    ]);
  }
}
