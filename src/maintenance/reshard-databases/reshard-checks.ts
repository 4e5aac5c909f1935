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

/** Creates the partitions that idempotency keys of one database need in another; expired keys stay expired. */
export async function makeKeyRoom(source: Database, target: Database): Promise<void> {
  for (const span of await partitionsOf(source, keyPartitions)) {
    await makePartitions(target, keyPartitions, span, span.toMs - span.fromMs);
  }
  const [row] = await source.query<{ number: number }>(forgotten);
  if (row !== undefined) await target.query(forget, [row.number]);
}

const hasRecords = 'SELECT EXISTS (SELECT 1 FROM record) AS has_records';

/** @throws OperatorError for a database that is not empty */
export async function checkAdded(database: Database, index: number): Promise<void> {
  await checkVersion(database);
  if (await isEmptyDatabase(database)) return;
  throw new OperatorError(`Database ${index + 1} of the new list is not empty. Name an empty one.`);
}

/** @throws OperatorError for an unfinished database, or one with another identity */
export async function checkKnown(database: Database, index: number, databases: number): Promise<void> {
  await checkVersion(database);
  const identity = await readShardIdentity(database);
  if (identity === undefined || isSameShardIdentity(identity, { index, databases })) return;
  throw new OperatorError(
    `Database ${index + 1} of the old list is a different one. Name all databases, in the order of store.shards.`,
  );
}

/** @throws OperatorError when a database to be removed has records that somebody may still want */
export async function refuseRecords(database: Database, index: number): Promise<void> {
  const [row] = await database.query<{ has_records: boolean }>(hasRecords);
  if (row?.has_records !== true) return;
  throw new OperatorError(
    `The log of database ${index + 1}, which is removed, has records that would be lost to readers. Wait until all consumers, forwarders and actions have read them ("behind": 0) with no device sending, stop the servers, and use --leave-log.`,
  );
}

/** @throws OperatorError unless one list is a prefix of the other */
export function checkLists(from: readonly string[], to: readonly string[]): void {
  checkUrls(from);
  checkUrls(to);
  const shared = Math.min(from.length, to.length);
  const isLast = from.slice(0, shared).every((url, index) => url === to[index]);
  if (shared === 0 || from.length === to.length || !isLast) {
    throw new OperatorError(
      'The lists do not fit. Name all databases as they are (--from) and as they will be (--to), in the order of store.shards; databases are added or removed at the end.',
    );
  }
}
