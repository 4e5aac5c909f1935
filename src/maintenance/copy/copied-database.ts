import { OperatorError } from '../../core/errors.ts';
import type { Log } from '../../core/telemetry/log.ts';
import { Database, type Session } from '../../storage/postgres/connection/database.ts';
import { clockMs } from '../../storage/postgres/connection/database-time.ts';
import { migrate } from '../../storage/postgres/schema/migrate.ts';

/** Of one copy and one database: it asks for what comes next while it works. */
const connectionsMax = 2;
/** For statements that count whole tables. */
const timeoutMilliseconds = 600_000;

/** Which copy it is stands under a part without a name. */
const copyPart = '';
/** On the first database: all that was copied was compared, and the progress of the others may be gone already. */
const endingPart = 'ending';

const isServed = `
  SELECT EXISTS (SELECT 1 FROM node WHERE until_ms > ${clockMs})
    OR EXISTS (SELECT 1 FROM lease WHERE until_ms > ${clockMs}) AS is_served`;
const kept = [
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
  SELECT NOT (${[...kept, 'audit'].map((table) => `EXISTS (SELECT 1 FROM ${table})`).join(' OR ')}
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
    'A server works on this database, or did some seconds ago: stop all of them, and try again.',
  );
}

/** Whether there is nothing in its tables. */
export async function isEmptyDatabase(database: Database): Promise<boolean> {
  const [row] = await database.query<{ is_empty: boolean }>(isEmpty);
  return row?.is_empty === true;
}

/** A database that a copy goes into: it is not served before that has come to its end. */
export class CopiedDatabase {
  readonly database: Database;
  readonly #done = new Map<string, Buffer>();

  private constructor(database: Database) {
    this.database = database;
  }

  /**
   * An empty one, whose tables are made, or one that the same copy has begun with; `isEnding`: or that it has come to
   * its end with. @throws OperatorError
   */
  static async open(database: Database, copy: string, isEnding: boolean): Promise<CopiedDatabase> {
    const copyMark = Buffer.from(copy);
    // One that is killed in between would leave tables that are empty, and look as if they could be served.
    await migrate(database, (session) => void putProgress(session, copyPart, copyMark));
    await refuseServed(database);
    const copied = new CopiedDatabase(database);
    const rows = await database.query<{ part: string; done: Buffer }>(progress);
    for (const { part, done } of rows) copied.#done.set(part, done);
    const before = copied.#done.get(copyPart)?.toString('utf8');
    const isOther = before === undefined ? !isEnding && !(await isEmptyDatabase(database)) : before !== copy;
    if (isOther) {
      throw new OperatorError(
        'A database to copy into must be empty, or have been begun with by a copy of the same data folder as it is now, in the same place of the list: make an empty one.',
      );
    }
    await putProgress(database, copyPart, copyMark);
    return copied;
  }

  /** The last key in the data folder that is copied of a part. */
  doneOf(part: string): Buffer | undefined {
    return this.#done.get(part);
  }

  /** In the transaction that copies it. */
  note(session: Session, part: string, done: Buffer): void {
    void putProgress(session, part, done);
  }

  get isEnding(): boolean {
    return this.#done.has(endingPart);
  }

  async noteEnding(): Promise<void> {
    await putProgress(this.database, endingPart, Buffer.alloc(0));
  }

  /** From now on it may be served. */
  async end(): Promise<void> {
    await this.database.query(forget);
  }
}

/** How far a part has come, whatever stood there. */
export function putProgress(session: Session, part: string, done: Buffer): Promise<unknown> {
  return session.query(put, [part, done]);
}
