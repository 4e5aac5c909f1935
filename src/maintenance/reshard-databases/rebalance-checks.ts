import { OperatorError } from '../../core/errors.ts';
import type { Database } from '../../storage/postgres/connection/database.ts';
import { checkVersion } from '../../storage/postgres/schema/migrate.ts';
import { keyPartitions, makePartitions, partitionsOf } from '../../storage/postgres/schema/partitions.ts';
import { isSameShardIdentity, readShardIdentity } from '../../storage/postgres/schema/shard-identity.ts';
import { isEmptyDatabase } from '../copy/copied-database.ts';
import { checkUrls } from '../copy/copy.ts';

const forgotten = `SELECT number FROM value WHERE name = 'forgotten'`;
const forget = `
  INSERT INTO value AS t (name, number) VALUES ('forgotten', $1)
  ON CONFLICT (name) DO UPDATE SET number = greatest(t.number, excluded.number)`;

/** The parts that idempotency keys of one database need in another; what was forgotten there stays forgotten. */
export async function makeKeyRoom(source: Database, target: Database): Promise<void> {
  for (const span of await partitionsOf(source, keyPartitions)) {
    await makePartitions(target, keyPartitions, span, span.toMs - span.fromMs);
  }
  const [row] = await source.query<{ number: number }>(forgotten);
  if (row !== undefined) await target.query(forget, [row.number]);
}

const hasRecords = 'SELECT EXISTS (SELECT 1 FROM record) AS has_records';

/** @throws OperatorError for one that has something in it. */
export async function checkAdded(database: Database, index: number): Promise<void> {
  await checkVersion(database);
  if (await isEmptyDatabase(database)) return;
  throw new OperatorError(`Database ${index + 1} of the new list must be empty.`);
}

/** @throws OperatorError for one that is not whole, or has another place in its store. */
export async function checkKnown(database: Database, index: number, databases: number): Promise<void> {
  await checkVersion(database);
  const place = await readShardIdentity(database);
  if (place === undefined || isSameShardIdentity(place, { index, databases })) return;
  throw new OperatorError(
    `Database ${index + 1} of the old list is another one: name the databases in the order of store.shards, and all of them.`,
  );
}

/** @throws OperatorError where a database that goes has records that somebody may still want. */
export async function refuseRecords(database: Database, index: number): Promise<void> {
  const [row] = await database.query<{ has_records: boolean }>(hasRecords);
  if (row?.has_records !== true) return;
  throw new OperatorError(
    `There are records in the log of database ${index + 1}, which goes: nobody would be given them any more. Wait until all consumers, forwarders and actions have read them ("behind": 0) with no device sending, stop the servers, and say --leave-log.`,
  );
}

/** @throws OperatorError for lists of which neither is the beginning of the other. */
export function checkLists(from: readonly string[], to: readonly string[]): void {
  checkUrls(from);
  checkUrls(to);
  const shared = Math.min(from.length, to.length);
  const isLast = from.slice(0, shared).every((url, index) => url === to[index]);
  if (shared === 0 || from.length === to.length || !isLast) {
    throw new OperatorError(
      'Name all databases as they are (--from) and as they are to be (--to), in the order of store.shards: databases are added at the end, or go from there.',
    );
  }
}
