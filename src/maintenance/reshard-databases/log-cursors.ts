import type { Session } from '../../storage/postgres/connection/database.ts';

/** Rows of `stored` with cursors in the log of a shard, whose number is in their keys. */
export interface LogCursors {
  store: string;
  name: string;
  /** Offset of the shard number in the key; two bytes. */
  shardAt: number;
}

const drop = `
  DELETE FROM stored WHERE store = $1 AND name = $2
    AND get_byte(key, $3) * 256 + get_byte(key, $3 + 1) >= $4`;

/** Drops the cursors of logs beyond the first `logs`: a log with that number later is another one. */
export async function dropLogCursors(
  session: Session,
  { store, name, shardAt }: LogCursors,
  logs: number,
): Promise<void> {
  await session.query(drop, [store, name, shardAt, logs]);
}
