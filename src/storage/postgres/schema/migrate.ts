import { OperatorError } from '../../../core/errors.ts';
import type { Database, Session } from '../connection/database.ts';
import { migrations } from './migrations.ts';

/** Of devices that are moved between databases, in `copy_progress`. */
export const rebalancePart = 'rebalance';

const versions = `CREATE TABLE IF NOT EXISTS migration (version integer PRIMARY KEY, at_ms bigint NOT NULL)`;
const latest = 'SELECT coalesce(max(version), 0) AS version FROM migration';
const underWay = `SELECT min(part) AS part, count(*) FILTER (WHERE part LIKE '${rebalancePart}%') AS moves FROM copy_progress`;
/** Waits for whoever is at it, as long as its transaction lasts: the number is no other lock's of this program. */
const lock = 'SELECT pg_advisory_xact_lock(7310200700)';

/** The version of a database's tables; 0 for one that has none. */
export async function databaseVersion(database: Database): Promise<number> {
  const [found] = await database.query<{ exists: boolean }>(
    `SELECT to_regclass('migration') IS NOT NULL AS exists`,
  );
  if (found?.exists !== true) return 0;
  const [row] = await database.query<{ version: number }>(latest);
  return row?.version ?? 0;
}

/**
 * Brings the tables of a database to the version of this program. Answers the versions that were run. `asks`: for what
 * must be there as soon as they are, in the transaction of the last version, if any is run.
 * @throws OperatorError for tables of a newer program.
 */
export async function migrate(database: Database, asks?: (session: Session) => void): Promise<number[]> {
  const done: number[] = [];
  for (let isUpToDate = false; !isUpToDate; ) {
    isUpToDate = await database.transaction(async (transaction) => {
      transaction.query(lock);
      // Behind the lock: two who make it at once, though only if it is not there, fail.
      transaction.query(versions);
      const [row] = await transaction.query<{ version: number }>(latest);
      const version = row?.version ?? 0;
      if (version > migrations.length) throw newer(version);
      const next = migrations[version];
      if (next !== undefined) {
        transaction.query(next);
        transaction.query('INSERT INTO migration VALUES ($1, $2)', [version + 1, Date.now()]);
        if (version + 1 === migrations.length) asks?.(transaction);
        done.push(version + 1);
      }
      await transaction.commit();
      return next === undefined;
    });
  }
  return done;
}

/** @throws OperatorError where the tables are not of this program's version. */
export async function checkTables(database: Database): Promise<void> {
  const version = await databaseVersion(database);
  if (version > migrations.length) throw newer(version);
  if (version < migrations.length) {
    throw new OperatorError(
      `The tables of the database are of version ${version}, this program needs ${migrations.length}: run "fleetpost migrate".`,
    );
  }
}

/** @throws OperatorError also where what is in them is not whole. */
export async function checkVersion(database: Database): Promise<void> {
  await checkTables(database);
  const [row] = await database.query<{ part: string | null; moves: number }>(underWay);
  if (row === undefined || row.part === null) return;
  throw new OperatorError(
    row.moves > 0
      ? 'Devices are being moved between this database and others: give the same "fleetpost rebalance" again, which goes on with it.'
      : 'A copy into this database has not come to its end: give the same "fleetpost copy" again, which goes on with it.',
  );
}

function newer(version: number): OperatorError {
  return new OperatorError(
    `The tables of the database are of version ${version}, newer than this program (${migrations.length}): start the newer program.`,
  );
}
