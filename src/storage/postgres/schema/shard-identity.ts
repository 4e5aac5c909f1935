import { OperatorError } from '../../../core/errors.ts';
import type { Session } from '../connection/database.ts';

/** Index of a database in its store, and the number of databases: together they place devices. */
export interface ShardIdentity {
  index: number;
  databases: number;
}

const note = `
  INSERT INTO value (name, number) VALUES ('database', $1), ('databases', $2) ON CONFLICT (name) DO NOTHING`;
const change = `
  INSERT INTO value (name, number) VALUES ('database', $1), ('databases', $2)
  ON CONFLICT (name) DO UPDATE SET number = excluded.number`;
const noted = `SELECT name, number FROM value WHERE name IN ('database', 'databases')`;

/** Undefined before the first start. */
export async function readShardIdentity(session: Session): Promise<ShardIdentity | undefined> {
  const rows = await session.query<{ name: string; number: number }>(noted);
  const { database: index, databases } = Object.fromEntries(rows.map(({ name, number }) => [name, number]));
  return index === undefined || databases === undefined ? undefined : { index, databases };
}

/** Writes the identity of a database; with `databases` 0, it is never served again. */
export async function writeShardIdentity(
  session: Session,
  { index, databases }: ShardIdentity,
): Promise<void> {
  await session.query(change, [index, databases]);
}

/**
 * Stores the identity of a database when it is first served, and checks the configuration against it from then on: with
 * any other identity it would have none of its devices. @throws OperatorError
 */
export async function checkShardIdentity(session: Session, identity: ShardIdentity): Promise<void> {
  await session.query(note, [identity.index, identity.databases]);
  const found = await readShardIdentity(session);
  if (found === undefined || isSameShardIdentity(found, identity)) return;
  throw new OperatorError(
    `The configuration names ${describe(identity)}, but that one is ${describe(found)}. Name all databases in their order, or change their number with "fleetpost rebalance".`,
  );
}

export function isSameShardIdentity(one: ShardIdentity, other: ShardIdentity): boolean {
  return one.index === other.index && one.databases === other.databases;
}

function describe({ index, databases }: ShardIdentity): string {
  return databases === 0 ? 'no longer part of a store' : `database ${index + 1} of ${databases} of the store`;
}
