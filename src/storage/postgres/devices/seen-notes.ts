import type { DeviceKey } from '../../../core/identity.ts';
import type { Activity, FleetCounts } from '../../../domain/devices/device.ts';
import { bucketOf } from '../../../domain/devices/seen-bucket.ts';
import type { Session } from '../connection/database.ts';

const add = `
  INSERT INTO fleet_count AS t (fleet_id, devices, disabled)
  SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS k (fleet_id, devices, disabled)
  ORDER BY fleet_id
  ON CONFLICT (fleet_id) DO UPDATE
    SET devices = t.devices + excluded.devices, disabled = t.disabled + excluded.disabled`;

/**
 * Changes of a transaction to the counts of fleets: added by the database rather than read first, so that writers of
 * one fleet wait for each other no longer than the commit takes.
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

/** Rows are locked in order, since several nodes may have seen the same devices. A device without a row was deleted. */
const note = `
  WITH locked AS (
    SELECT t.device, k.last_seen_ms, k.address, k.bucket
    FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bigint[]) AS k (device, last_seen_ms, address, bucket)
    JOIN activity t ON t.device = k.device ORDER BY t.device FOR UPDATE OF t)
  UPDATE activity t
  SET last_seen_ms = k.last_seen_ms, address = coalesce(k.address, t.address), bucket = k.bucket
  FROM locked k WHERE t.device = k.device`;

type Note = Pick<Activity, 'lastSeenMs' | 'address'>;

/** When and from where devices were seen, written by a transaction without reading anything. */
export class SeenNotes {
  readonly #notes = new Map<DeviceKey, Note>();

  note({ device, lastSeenMs, address }: Activity): void {
    this.#notes.set(device, { lastSeenMs, address: address ?? this.#notes.get(device)?.address });
  }

  store(session: Session): void {
    if (this.#notes.size === 0) return;
    const notes = [...this.#notes.values()];
    void session.query(note, [
      [...this.#notes.keys()],
      notes.map(({ lastSeenMs }) => lastSeenMs),
      notes.map(({ address }) => address ?? null),
      notes.map(({ lastSeenMs }) => bucketOf(lastSeenMs)),
    ]);
  }
}
