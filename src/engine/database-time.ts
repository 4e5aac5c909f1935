import type { Session } from './database.ts';

const databaseTime = 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms';

/** By the clock of the database, the same for all nodes. */
export async function databaseTimeMs(session: Session): Promise<number> {
  const [row] = await session.query<{ now_ms: number }>(databaseTime);
  return row?.now_ms ?? Date.now();
}
