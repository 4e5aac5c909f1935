import { OperatorError } from '../../core/errors.ts';
import type { Database, Session } from '../../storage/postgres/connection/database.ts';
import { bytesOfRow } from '../../storage/postgres/mail/mail-bytes.ts';
import { reshardPart } from '../../storage/postgres/schema/migrate.ts';
import { type ShardIdentity, writeShardIdentity } from '../../storage/postgres/schema/shard-identity.ts';
import { pack, unpack } from '../../storage/tables/codec.ts';
import { putProgress } from '../copy/copied-database.ts';

const counts = [
  // A fleet without devices here keeps a row with 0.
  'UPDATE fleet_count SET devices = 0, disabled = 0',
  `INSERT INTO fleet_count (fleet_id, devices, disabled)
   SELECT left(device, 8), count(*), count(*) FILTER (WHERE NOT enabled) FROM device GROUP BY 1
   ON CONFLICT (fleet_id) DO UPDATE SET devices = excluded.devices, disabled = excluded.disabled`,
  'UPDATE letter_count SET letters = 0',
  `INSERT INTO letter_count (fleet_id, letters) SELECT fleet_id, count(*) FROM dead_letter GROUP BY 1
   ON CONFLICT (fleet_id) DO UPDATE SET letters = excluded.letters`,
  'UPDATE mail_bytes SET bytes = 0',
  `INSERT INTO mail_bytes (fleet_id, bytes) SELECT left(device, 8), sum(bytes) FROM (
     SELECT device, ${bytesOfRow} AS bytes FROM mail UNION ALL SELECT device, ${bytesOfRow} FROM delayed_mail) AS waiting
   GROUP BY 1 ON CONFLICT (fleet_id) DO UPDATE SET bytes = excluded.bytes`,
  // Otherwise statements are planned for the previous contents.
  'ANALYZE',
];

/** Recounts a database from its rows, while nobody serves it; idempotent. */
export async function recount(database: Database): Promise<void> {
  for (const text of counts) await database.query(text);
}

/**
 * copying: nothing is removed yet. removing: everything was copied and compared, and is being removed at its source.
 */
type Phase = 'copying' | 'removing';

/** Marks a database during a change of the number of databases. */
export interface Mark {
  id: string;
  from: number;
  to: number;
  index: number;
  phase: Phase;
}

const parts = `SELECT part, done FROM copy_progress WHERE part LIKE '${reshardPart}%'`;
const forget = `DELETE FROM copy_progress WHERE part LIKE '${reshardPart}%'`;
const forgetProgress = `DELETE FROM copy_progress WHERE part LIKE '${reshardPart} %'`;

/** A database during resharding, not served before that is complete. */
export class ReshardedDatabase {
  readonly database: Database;
  readonly #done = new Map<string, readonly unknown[]>();
  mark: Mark | undefined;

  private constructor(database: Database) {
    this.database = database;
  }

  static async open(database: Database): Promise<ReshardedDatabase> {
    const opened = new ReshardedDatabase(database);
    const rows = await database.query<{ part: string; done: Buffer }>(parts);
    for (const { part, done } of rows) {
      if (part === reshardPart) opened.mark = unpack(done) as Mark;
      else opened.#done.set(part, unpack(done) as unknown[]);
    }
    return opened;
  }

  /** @throws OperatorError if another change has marked it */
  async putMark(mark: Mark): Promise<void> {
    const { id, index } = this.mark ?? mark;
    if (id !== mark.id || index !== mark.index) throw otherChange();
    await putProgress(this.database, reshardPart, pack(mark));
    this.mark = mark;
  }

  /** The last key copied of a kind of rows. */
  doneOf(kind: string): readonly unknown[] | undefined {
    return this.#done.get(`${reshardPart} ${kind}`);
  }

  async note(kind: string, last: readonly unknown[]): Promise<void> {
    await putProgress(this.database, `${reshardPart} ${kind}`, pack(last));
  }

  /** Clears the progress, so that everything is copied again. */
  async forgetProgress(): Promise<void> {
    await this.database.query(forgetProgress);
    this.#done.clear();
  }

  /** Writes what is derived from the present rows. */
  async settle(identity: ShardIdentity | undefined): Promise<void> {
    await recount(this.database);
    if (identity !== undefined) await writeShardIdentity(this.database, identity);
  }

  /** Removes the mark: from now on the database may be served. */
  async end(): Promise<void> {
    await this.database.query(forget);
    this.mark = undefined;
  }
}

export function otherChange(): OperatorError {
  return new OperatorError(
    'Another change of some of these databases is unfinished. Run its command again first, or undo it with --give-up.',
  );
}

/** Rows of `stored` with cursors in the log of a shard, whose number is in their keys. */
export interface LogCursors {
  store: string;
  name: string;
  /** Offset of the shard number in the key; two bytes. */
  shardAt: number;
}

const cursorDrop = `
  DELETE FROM stored WHERE store = $1 AND name = $2
    AND get_byte(key, $3) * 256 + get_byte(key, $3 + 1) >= $4`;

/** Drops the cursors of logs beyond the first `logs`: a log with that number later is another one. */
export async function dropLogCursors(
  session: Session,
  { store, name, shardAt }: LogCursors,
  logs: number,
): Promise<void> {
  await session.query(cursorDrop, [store, name, shardAt, logs]);
}
