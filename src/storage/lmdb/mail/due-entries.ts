import type { DeviceKey } from '../../../core/identity.ts';
import type { Table } from '../environment/stored-tables.ts';
import { readDevice, sequenceBytes, sequenceKey } from '../layout/keys.ts';

/** Damaged entries to know; more of them than this would not be a matter for a running server. */
const stuckMax = 1_000;

/** A table that is keyed by time, device and mail id: what is to happen to a mail, and when. */
export class DueEntries {
  readonly #table: Table;
  readonly #what: string;
  /** Entries whose mail cannot be dealt with since a record is damaged. */
  readonly #stuck = new Set<string>();

  /** `what` is to happen, for the error. */
  constructor(table: Table, what: string) {
    this.#table = table;
    this.#what = what;
  }

  /** How many entries `each` leaves where they are. */
  get stuck(): number {
    return this.#stuck.size;
  }

  /**
   * Hands out what is due, earliest first, at most `limit`.
   * @throws Error at damaged records, once: the next call leaves out what this one stopped at.
   */
  each<T>(lifeMs: number, limit: number, act: (key: Buffer, device: DeviceKey) => T): T[] {
    const end = sequenceKey(lifeMs);
    const due = [...this.#table.getKeys({ end, limit: limit + this.#stuck.size })];
    const able = due.filter((key) => !this.#stuck.has(key.toString('latin1')));
    return able.slice(0, limit).map((key) => {
      const device = readDevice(key, sequenceBytes);
      try {
        return act(key, device);
      } catch (cause) {
        if (this.#stuck.size < stuckMax) this.#stuck.add(key.toString('latin1'));
        throw new Error(`the mail of ${device} cannot be ${this.#what}`, { cause });
      }
    });
  }
}
