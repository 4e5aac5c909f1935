import type { Session } from '../../storage/postgres/connection/database.ts';

/** Rows of `stored` that say how far somebody has come in the log of a shard, whose number stands in their keys. */
export interface LogPlaces {
  store: string;
  name: string;
  /** Where in the key, in two bytes. */
  shardAt: number;
}

const forget = `
  DELETE FROM stored WHERE store = $1 AND name = $2
    AND get_byte(key, $3) * 256 + get_byte(key, $3 + 1) >= $4`;

/** What was kept of logs beyond the first so many: a log that stands there later is another one. */
export async function forgetLogPlaces(
  session: Session,
  { store, name, shardAt }: LogPlaces,
  logs: number,
): Promise<void> {
  await session.query(forget, [store, name, shardAt, logs]);
}
