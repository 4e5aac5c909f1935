import type { DeviceKey } from '../../../core/identity.ts';
import type { Activity } from '../../../domain/devices/device.ts';
import { bucketOf } from '../../../domain/devices/seen-bucket.ts';
import type { Session } from '../connection/database.ts';

/** Rows are locked in order, since several nodes may have seen the same devices. Who has none was deleted. */
const note = `
  WITH locked AS (
    SELECT t.device, k.last_seen_ms, k.address, k.bucket
    FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bigint[]) AS k (device, last_seen_ms, address, bucket)
    JOIN activity t ON t.device = k.device ORDER BY t.device FOR UPDATE OF t)
  UPDATE activity t
  SET last_seen_ms = k.last_seen_ms, address = coalesce(k.address, t.address), bucket = k.bucket
  FROM locked k WHERE t.device = k.device`;

type Note = Pick<Activity, 'lastSeenMs' | 'address'>;

/** When devices were seen and from where, as a transaction notes it: nothing is read for it. */
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
