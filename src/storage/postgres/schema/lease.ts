import type { Database } from '../connection/database.ts';
import { clockMs } from '../connection/database-time.ts';

/** The holder renews it; another takes it once it has expired. */
const take = `
  INSERT INTO lease (name, holder, until_ms) SELECT $1, $2, ${clockMs} + $3
  ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms
  WHERE lease.holder = excluded.holder OR lease.until_ms < ${clockMs}
  RETURNING name`;
const release = 'DELETE FROM lease WHERE name = $1 AND holder = $2';

/**
 * A lease, so that one node at a time runs a job: a row, by the clock of the database. It only saves work: jobs must
 * tolerate being run by two nodes at once, as they are when a holder stalls for longer than its lease.
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

  /** Takes or renews the lease. Returns whether this holder has it. @throws ApiError unavailable */
  async take(): Promise<boolean> {
    const rows = await this.#database.query(take, [this.#name, this.#holder, this.#milliseconds]);
    return rows.length > 0;
  }

  /** Releases the lease, so that another holder need not wait for its end. @throws ApiError unavailable */
  async release(): Promise<void> {
    await this.#database.query(release, [this.#name, this.#holder]);
  }
}
