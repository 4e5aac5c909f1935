import { type DeviceKey, fleetIdOf } from '../../../core/identity.ts';
import { mailOverheadBytes, waitingBytesOf } from '../../../domain/mail/mail-bytes.ts';
import type { Session } from '../connection/database.ts';

/** What the mail in a row counts for, as `waitingBytesOf` has it. */
export const bytesOfRow = `octet_length(payload) + ${mailOverheadBytes}`;

const select = 'SELECT fleet_id, bytes FROM mail_bytes WHERE fleet_id = ANY ($1::text[])';
const add = `
  INSERT INTO mail_bytes AS t (fleet_id, bytes)
  SELECT * FROM unnest($1::text[], $2::bigint[]) AS k (fleet_id, bytes) ORDER BY fleet_id
  ON CONFLICT (fleet_id) DO UPDATE SET bytes = t.bytes + excluded.bytes`;

/** Adds to the bytes of fleets' waiting mail. Rows are locked in order of fleet. */
export function addMailBytes(session: Session, changes: ReadonlyMap<string, number>): void {
  const changed = [...changes].filter(([, bytes]) => bytes !== 0);
  if (changed.length === 0) return;
  void session.query(add, [changed.map(([fleetId]) => fleetId), changed.map(([, bytes]) => bytes)]);
}

/** Bytes of the waiting mail of fleets: as a transaction found them, and its changes. */
export class DatabaseMailBytes {
  readonly #wanted = new Set<string>();
  readonly #found = new Map<string, number>();
  readonly #changes = new Map<string, number>();

  /** Names the fleet of a device, of which `of` will be asked. */
  preload(device: DeviceKey): void {
    this.#wanted.add(fleetIdOf(device));
  }

  async load(session: Session): Promise<void> {
    if (this.#wanted.size === 0) return;
    const wanted = [...this.#wanted];
    for (const fleetId of wanted) this.#found.set(fleetId, 0);
    const rows = await session.query<{ fleet_id: string; bytes: number }>(select, [wanted]);
    for (const { fleet_id, bytes } of rows) this.#found.set(fleet_id, bytes);
  }

  /** @throws Error for a fleet that was not loaded: it would have no limit */
  of(fleetId: string): number {
    const found = this.#found.get(fleetId);
    if (found === undefined) throw new Error('the bytes of a fleet were not loaded');
    return found + (this.#changes.get(fleetId) ?? 0);
  }

  /** Counts a mail that begins to wait. */
  add(device: DeviceKey, payloadBytes: number): void {
    this.change(device, waitingBytesOf(payloadBytes));
  }

  /** Counts a mail that waits no more. */
  remove(device: DeviceKey, payloadBytes: number): void {
    this.change(device, -waitingBytesOf(payloadBytes));
  }

  change(device: DeviceKey, bytes: number): void {
    const fleetId = fleetIdOf(device);
    this.#changes.set(fleetId, (this.#changes.get(fleetId) ?? 0) + bytes);
  }

  store(session: Session): void {
    addMailBytes(session, this.#changes);
  }
}
