import type { DeviceKey } from '../../../core/identity.ts';
import type { Database } from '../connection/database.ts';
import { clockMs } from '../connection/database-time.ts';

/** Ends are looked for so far back: longer than a transaction may take between its time and its commit. */
const backMilliseconds = 10_000;

const ends = `
  SELECT device, what, at_ms FROM stream_end
  WHERE at_ms > ${clockMs} - $1 ORDER BY at_ms`;

/** What streams had to do, and when, by the clock of the database. */
type StreamEnd = { device: DeviceKey; what: string; at_ms: number };

/** What streams had to end for, whether a notification told of it or not: each is told once. */
export class StreamEnds {
  readonly #database: Database;
  readonly #told = new Map<string, number>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Those that were not told before. @throws ApiError unavailable */
  async look(): Promise<StreamEnd[]> {
    const rows = await this.#database.query<StreamEnd>(ends, [backMilliseconds]);
    const fresh = rows.filter(({ device, what, at_ms: atMs }) => {
      const key = `${atMs} ${what}${device}`;
      const isKnown = this.#told.has(key);
      this.#told.set(key, performance.now());
      return !isKnown;
    });
    const oldMs = performance.now() - 2 * backMilliseconds;
    for (const [key, atMs] of this.#told) if (atMs < oldMs) this.#told.delete(key);
    return fresh;
  }
}
