import { OperatorError } from '../../../core/errors.ts';
import type { Database, Session } from '../connection/database.ts';
import { migrations } from './migrations.ts';

/** Prefix of the parts in `copy_progress` that belong to resharding. */
export const reshardPart = 'rebalance';

const versions = `CREATE TABLE IF NOT EXISTS migration (version integer PRIMARY KEY, at_ms bigint NOT NULL)`;
const latest = 'SELECT coalesce(max(version), 0) AS version FROM migration';
const underWay = `SELECT min(part) AS part, count(*) FILTER (WHERE part LIKE '${reshardPart}%') AS reshards FROM copy_progress`;
/** Waits for a concurrent migration; the number is unique among the locks of this program. */
const lock = 'SELECT pg_advisory_xact_lock(7310200700)';

/** Version of the tables of a database; 0 without tables. */
export async function databaseVersion(database: Database): Promise<number> {
  const [found] = await database.query<{ exists: boolean }>(
    `SELECT to_regclass('migration') IS NOT NULL AS exists`,
  );
  if (found?.exists !== true) return 0;
  const [row] = await database.query<{ version: number }>(latest);
  return row?.version ?? 0;
}

/**
 * Migrates the tables of a database to the version of this program, and returns the versions that were run. `initialize`
 * queues what must exist as soon as the tables do, in the transaction of the last version, if any is run.
 * @throws OperatorError for tables of a newer program
 */
export async function migrate(
  database: Database,
  initialize?: (session: Session) => void,
): Promise<number[]> {
  const done: number[] = [];
  for (let isUpToDate = false; !isUpToDate; ) {
    isUpToDate = await database.transaction(async (transaction) => {
      transaction.query(lock);
      // After the lock: concurrent creation fails, even with IF NOT EXISTS.
      transaction.query(versions);
      const [row] = await transaction.query<{ version: number }>(latest);
      const version = row?.version ?? 0;
      if (version > migrations.length) throw newer(version);
      const next = migrations[version];
      if (next !== undefined) {
        transaction.query(next);
        transaction.query('INSERT INTO migration VALUES ($1, $2)', [version + 1, Date.now()]);
        if (version + 1 === migrations.length) initialize?.(transaction);
        done.push(version + 1);
      }
      await transaction.commit();
      return next === undefined;
    });
  }
  return done;
}

/** @throws OperatorError for tables of another version, but for `newerMax` newer ones */
export async function checkTables(database: Database, newerMax = 0): Promise<void> {
  const version = await databaseVersion(database);
  if (version > migrations.length + newerMax) throw newer(version);
  if (version < migrations.length) {
    throw new OperatorError(
      `The tables of the database have version ${version}, this program needs ${migrations.length}. Run "fleetpost migrate".`,
    );
  }
}

/**
 * For a node: tables may be one version newer than its program, since a migration only adds what the version before can
 * live with. So a node that restarts amid a rolling upgrade comes back.
 * @throws OperatorError for tables of another version, or an unfinished copy or reshard
 */
export async function checkServable(database: Database): Promise<void> {
  await checkVersion(database, 1);
}

/** @throws OperatorError for tables of another version, or an unfinished copy or reshard */
export async function checkVersion(database: Database, newerMax = 0): Promise<void> {
  await checkTables(database, newerMax);
  const [row] = await database.query<{ part: string | null; reshards: number }>(underWay);
  if (row === undefined || row.part === null) return;
  throw new OperatorError(
    row.reshards > 0
      ? 'Resharding of this database is unfinished. Run the same "fleetpost rebalance" again to continue it.'
      : 'A copy into this database is unfinished. Run the same "fleetpost copy" again to continue it.',
  );
}

function newer(version: number): OperatorError {
  return new OperatorError(
    `The tables of the database have version ${version}, newer than this program (${migrations.length}). Start the newer program.`,
  );
}
