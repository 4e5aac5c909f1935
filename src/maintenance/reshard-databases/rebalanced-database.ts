import { OperatorError } from '../../core/errors.ts';
import { pack, unpack } from '../../storage/lmdb/environment/codec.ts';
import type { Database } from '../../storage/postgres/connection/database.ts';
import { rebalancePart } from '../../storage/postgres/schema/migrate.ts';
import { type ShardIdentity, writeShardIdentity } from '../../storage/postgres/schema/shard-identity.ts';
import { putProgress } from '../copy/copied-database.ts';

const counts = [
  // A fleet that has no device here any more keeps a row that says so.
  'UPDATE fleet_count SET devices = 0, disabled = 0',
  `INSERT INTO fleet_count (fleet_id, devices, disabled)
   SELECT left(device, 8), count(*), count(*) FILTER (WHERE NOT enabled) FROM device GROUP BY 1
   ON CONFLICT (fleet_id) DO UPDATE SET devices = excluded.devices, disabled = excluded.disabled`,
  'UPDATE letter_count SET letters = 0',
  `INSERT INTO letter_count (fleet_id, letters) SELECT fleet_id, count(*) FROM dead_letter GROUP BY 1
   ON CONFLICT (fleet_id) DO UPDATE SET letters = excluded.letters`,
  // Else statements would be planned for what was there before.
  'ANALYZE',
];

/** What is counted of a database, of what is in it now, while nobody serves it. To do it again changes nothing. */
export async function recount(database: Database): Promise<void> {
  for (const text of counts) await database.query(text);
}

/**
 * copying: nothing was taken away from anywhere. removing: all that moves was copied and compared, and goes from where
 * it was.
 */
type Phase = 'copying' | 'removing';

/** What is noted in each database of a change of their number that is under way. */
export interface Mark {
  id: string;
  from: number;
  to: number;
  index: number;
  phase: Phase;
}

const parts = `SELECT part, done FROM copy_progress WHERE part LIKE '${rebalancePart}%'`;
const forget = `DELETE FROM copy_progress WHERE part LIKE '${rebalancePart}%'`;
const forgetProgress = `DELETE FROM copy_progress WHERE part LIKE '${rebalancePart} %'`;

/** One database while devices are moved between it and others: it is not served before that has come to its end. */
export class RebalancedDatabase {
  readonly database: Database;
  readonly #done = new Map<string, readonly unknown[]>();
  mark: Mark | undefined;

  private constructor(database: Database) {
    this.database = database;
  }

  static async open(database: Database): Promise<RebalancedDatabase> {
    const opened = new RebalancedDatabase(database);
    const rows = await database.query<{ part: string; done: Buffer }>(parts);
    for (const { part, done } of rows) {
      if (part === rebalancePart) opened.mark = unpack(done) as Mark;
      else opened.#done.set(part, unpack(done) as unknown[]);
    }
    return opened;
  }

  /** @throws OperatorError where it is marked by another change. */
  async putMark(mark: Mark): Promise<void> {
    const { id, index } = this.mark ?? mark;
    if (id !== mark.id || index !== mark.index) throw otherChange();
    await putProgress(this.database, rebalancePart, pack(mark));
    this.mark = mark;
  }

  /** The last key that is copied of a kind of rows. */
  doneOf(kind: string): readonly unknown[] | undefined {
    return this.#done.get(`${rebalancePart} ${kind}`);
  }

  async note(kind: string, last: readonly unknown[]): Promise<void> {
    await putProgress(this.database, `${rebalancePart} ${kind}`, pack(last));
  }

  /** Whatever was copied, it is to be copied again. */
  async forgetProgress(): Promise<void> {
    await this.database.query(forgetProgress);
    this.#done.clear();
  }

  /** All that follows from what is there now. */
  async settle(place: ShardIdentity | undefined): Promise<void> {
    await recount(this.database);
    if (place !== undefined) await writeShardIdentity(this.database, place);
  }

  /** From now on it may be served. */
  async end(): Promise<void> {
    await this.database.query(forget);
    this.mark = undefined;
  }
}

export function otherChange(): OperatorError {
  return new OperatorError(
    'Devices are being moved between these databases, or some of them, for another change: give the command of that again first, or end it by --give-up.',
  );
}
