import type { Session } from './database.ts';

/** The clock of the database in SQL: milliseconds since 1970, now and not when the transaction began. */
export const clockMs = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

const databaseTime = `SELECT ${clockMs} AS now_ms`;

/** By the clock of the database, the same for all nodes. */
export async function databaseTimeMs(session: Session): Promise<number> {
  const [row] = await session.query<{ now_ms: number }>(databaseTime);
  return row?.now_ms ?? Date.now();
}
