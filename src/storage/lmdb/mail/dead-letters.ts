import { type DeviceKey, fleetIdLength, fleetIdOf } from '../../../core/identity.ts';
import { copyUuid } from '../../../core/uuid.ts';
import { droppedLetters } from '../../../domain/mail/end-rules.ts';
import type { DeathReason } from '../../../domain/mail/ended-mail.ts';
import type { Mail } from '../../../domain/mail/mail.ts';
import type { Table } from '../environment/stored-tables.ts';
import { encodeDeadLetter, mailOf } from '../layout/dead-letter-record.ts';
import { keyOfDeadLetter } from '../layout/keys.ts';

/** The dead letters of a shard (D16), inside its owner's write transaction. */
export class DeadLetters {
  readonly #table: Table;
  readonly #perFleetMax: number;
  /** Counts by fleet, first taken from LMDB. */
  readonly #counts = new Map<string, number>();
  #dropped = 0;

  constructor(table: Table, perFleetMax: number) {
    this.#table = table;
    this.#perFleetMax = perFleetMax;
  }

  /** Adds a letter, and drops the oldest beyond the limit. */
  put(device: DeviceKey, mail: Buffer, reason: DeathReason, diedAtMs: number): void {
    const fleetId = fleetIdOf(device);
    let count = this.#countOf(fleetId) + 1;
    this.#table.putSync(keyOfDeadLetter(device, copyUuid(mail)), encodeDeadLetter(mail, reason, diedAtMs));
    const limit = droppedLetters(count, this.#perFleetMax);
    if (limit > 0) {
      const oldest = [...this.#table.getKeys({ ...fleetRange(fleetId), limit })];
      for (const key of oldest) this.#table.removeSync(key);
      count -= oldest.length;
      this.#dropped += oldest.length;
    }
    this.#counts.set(fleetId, count);
  }

  /** @throws Error for a damaged record. */
  mail(device: DeviceKey, mailId: Uint8Array): Mail | undefined {
    const bytes = this.#table.getBinary(keyOfDeadLetter(device, mailId));
    return bytes && mailOf(bytes);
  }

  remove(device: DeviceKey, mailId: Uint8Array): boolean {
    const key = keyOfDeadLetter(device, mailId);
    if (!this.#table.doesExist(key)) return false;
    this.#table.removeSync(key);
    this.noteRemoved(key);
    return true;
  }

  /** Updates the count for a letter that the caller removes by its key. */
  noteRemoved(key: Buffer): void {
    const fleetId = key.toString('latin1', 0, fleetIdLength);
    const count = this.#counts.get(fleetId);
    if (count !== undefined) this.#counts.set(fleetId, count - 1);
  }

  /** Letters dropped for newer ones since the last call. */
  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  /** Discards the counts of a failed transaction. */
  rollback(): void {
    this.#counts.clear();
    this.#dropped = 0;
  }

  #countOf(fleetId: string): number {
    return this.#counts.get(fleetId) ?? this.#table.getKeysCount(fleetRange(fleetId));
  }
}

/** The key range of a fleet's letters. */
export function fleetRange(fleetId: string): { start: Buffer; end: Buffer } {
  return { start: Buffer.from(fleetId, 'latin1'), end: Buffer.from(`${fleetId}\xff`, 'latin1') };
}
