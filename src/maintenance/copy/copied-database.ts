import { OperatorError } from '../../core/errors.ts';
import type { Log } from '../../core/telemetry/log.ts';
import { Database, type Session } from '../../storage/postgres/connection/database.ts';
import { clockMs } from '../../storage/postgres/connection/database-time.ts';
import { migrate } from '../../storage/postgres/schema/migrate.ts';

/** One connection writes while another reads the next batch. */
const connectionsMax = 2;
/** Long enough for statements that count whole tables. */
const timeoutMilliseconds = 600_000;

/** The part with an empty name identifies the copy. */
const copyPart = '';
/** On the first database: everything was compared, and the progress of other databases may be cleared already. */
const endingPart = 'ending';

const isServed = `
  SELECT EXISTS (SELECT 1 FROM node WHERE until_ms > ${clockMs})
    OR EXISTS (SELECT 1 FROM lease WHERE until_ms > ${clockMs}) AS is_served`;
const deviceTables = [
  'device',
  'receipt',
  'dead_letter',
  'sent',
  'broadcast_mark',
  'idempotency',
  'record',
  'stored',
];
const isEmpty = `
  SELECT NOT (${[...deviceTables, 'audit'].map((table) => `EXISTS (SELECT 1 FROM ${table})`).join(' OR ')}
    OR EXISTS (SELECT 1 FROM record_end WHERE next > 0)) AS is_empty`;
const progress = 'SELECT part, done FROM copy_progress';
const put = `
  INSERT INTO copy_progress (part, done) VALUES ($1, $2)
  ON CONFLICT (part) DO UPDATE SET done = excluded.done`;
const forget = 'DELETE FROM copy_progress';

export function openDatabase(url: string, log: Log): Database {
  return new Database({ url, connectionsMax, timeoutMilliseconds, log });
}

/** @throws OperatorError */
export async function refuseServed(database: Database): Promise<void> {
  const [row] = await database.query<{ is_served: boolean }>(isServed);
  if (row?.is_served !== true) return;
  throw new OperatorError(
    'A server uses this database, or did some seconds ago. Stop all servers and try again.',
  );
}

/** True if all tables are empty. */
export async function isEmptyDatabase(database: Database): Promise<boolean> {
  const [row] = await database.query<{ is_empty: boolean }>(isEmpty);
  return row?.is_empty === true;
}

/** A target database of a copy, not served before the copy is complete. */
export class CopiedDatabase {
  readonly database: Database;
  readonly #done = new Map<string, Buffer>();

  private constructor(database: Database) {
    this.database = database;
  }

  /**
   * Opens an empty database, creating its tables, or one with an unfinished copy of the same state; with `isEnding`,
   * also one where that copy is complete. @throws OperatorError
   */
  static async open(database: Database, copy: string, isEnding: boolean): Promise<CopiedDatabase> {
    const copyMark = Buffer.from(copy);
    // Within the migration: a kill in between would leave empty tables that look as if they could be served.
    await migrate(database, (session) => void putProgress(session, copyPart, copyMark));
    await refuseServed(database);
    const copied = new CopiedDatabase(database);
    const rows = await database.query<{ part: string; done: Buffer }>(progress);
    for (const { part, done } of rows) copied.#done.set(part, done);
    const before = copied.#done.get(copyPart)?.toString('utf8');
    const isOther = before === undefined ? !isEnding && !(await isEmptyDatabase(database)) : before !== copy;
    if (isOther) {
      throw new OperatorError(
        'A database to copy into must be empty, or hold an unfinished copy of the same unchanged data folder, at the same place of the list. Create an empty one.',
      );
    }
    await putProgress(database, copyPart, copyMark);
    return copied;
  }

  /** The last key of the data folder that is copied of a part. */
  doneOf(part: string): Buffer | undefined {
    return this.#done.get(part);
  }

  /** Stores the progress of a part, in the transaction that copies it. */
  note(session: Session, part: string, done: Buffer): void {
    void putProgress(session, part, done);
  }

  get isEnding(): boolean {
    return this.#done.has(endingPart);
  }

  async noteEnding(): Promise<void> {
    await putProgress(this.database, endingPart, Buffer.alloc(0));
  }

  /** Clears the progress: from now on the database may be served. */
  async end(): Promise<void> {
    await this.database.query(forget);
  }
}

/** Stores the progress of a part. */
export function putProgress(session: Session, part: string, done: Buffer): Promise<unknown> {
  return session.query(put, [part, done]);
}
