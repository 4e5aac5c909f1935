import type { Database } from '../connection/database.ts';
import { clockMs } from '../connection/database-time.ts';

/** Whoever has it goes on with it; another gets it when its time is over. */
const take = `
  INSERT INTO lease (name, holder, until_ms) SELECT $1, $2, ${clockMs} + $3
  ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms
  WHERE lease.holder = excluded.holder OR lease.until_ms < ${clockMs}
  RETURNING name`;
const release = 'DELETE FROM lease WHERE name = $1 AND holder = $2';

/**
 * Who of all nodes does a job that one of them is to do: a row, by the clock of the database. It saves work and no
 * more: jobs bear being done by two at once, as they are when a holder is held up for longer than its lease.
 */
export class Lease {
  readonly #database: Database;
  readonly #name: string;
  readonly #holder: string;
  readonly #milliseconds: number;

  constructor(database: Database, name: string, holder: string, milliseconds: number) {
    this.#database = database;
    this.#name = name;
    this.#holder = holder;
    this.#milliseconds = milliseconds;
  }

  /** Whether this holder has it now, for as long again. @throws ApiError unavailable */
  async take(): Promise<boolean> {
    const rows = await this.#database.query(take, [this.#name, this.#holder, this.#milliseconds]);
    return rows.length > 0;
  }

  /** Another need not wait for its end. @throws ApiError unavailable */
  async release(): Promise<void> {
    await this.#database.query(release, [this.#name, this.#holder]);
  }
}
