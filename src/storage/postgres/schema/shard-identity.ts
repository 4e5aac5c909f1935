import { OperatorError } from '../../../core/errors.ts';
import type { Session } from '../connection/database.ts';

/** Which database of its store one is: devices are placed by both. */
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

/** Undefined where none was noted yet. */
export async function readShardIdentity(session: Session): Promise<ShardIdentity | undefined> {
  const rows = await session.query<{ name: string; number: number }>(noted);
  const { database: index, databases } = Object.fromEntries(rows.map(({ name, number }) => [name, number]));
  return index === undefined || databases === undefined ? undefined : { index, databases };
}

/** Of none (`databases` is 0) it is never served again. */
export async function writeShardIdentity(
  session: Session,
  { index, databases }: ShardIdentity,
): Promise<void> {
  await session.query(change, [index, databases]);
}

/**
 * Notes the place of a database when it is served first, and from then on holds the configuration to it: in any other
 * place it would have none of its devices. @throws OperatorError
 */
export async function checkShardIdentity(session: Session, place: ShardIdentity): Promise<void> {
  await session.query(note, [place.index, place.databases]);
  const found = await readShardIdentity(session);
  if (found === undefined || isSameShardIdentity(found, place)) return;
  throw new OperatorError(
    `The configuration names ${describe(place)}, and that one is ${describe(found)}: name all of them, in their order, or change their number by "fleetpost rebalance".`,
  );
}

export function isSameShardIdentity(one: ShardIdentity, other: ShardIdentity): boolean {
  return one.index === other.index && one.databases === other.databases;
}

function describe({ index, databases }: ShardIdentity): string {
  return databases === 0 ? 'part of no store any more' : `database ${index + 1} of ${databases} of the store`;
}
