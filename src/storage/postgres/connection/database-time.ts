import type { Session } from './database.ts';

/** The database clock in SQL: milliseconds since 1970, now rather than at the start of the transaction. */
export const clockMs = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

const databaseTime = `SELECT ${clockMs} AS now_ms`;

/** Current time by the database clock, the same for all nodes. */
export async function databaseTimeMs(session: Session): Promise<number> {
  const [row] = await session.query<{ now_ms: number }>(databaseTime);
  return row?.now_ms ?? Date.now();
}
