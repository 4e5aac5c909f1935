import { generateUuid } from '../../core/uuid.ts';
import type { Environment } from '../../storage/lmdb/environment/environment.ts';
import { sequenceKey } from '../../storage/lmdb/layout/keys.ts';
import type { Tables } from '../../storage/lmdb/layout/tables.ts';
import { endOfLog } from '../../storage/lmdb/log/ingest-log.ts';
import { emptyBatch, newestTimeMs } from '../../storage/lmdb/log/log-batch.ts';
import type { Database } from '../../storage/postgres/connection/database.ts';
import type { ShardSide } from '../parts/part.ts';

/** The end of a log: no later record may get a position that was used before, even if its record is gone. */
export interface LogEnd {
  next: number;
  /** When the last record was stored; 0 if unknown. */
  atMs: number;
}

const read = 'SELECT next, at_ms FROM record_end LIMIT 1';
const write = 'UPDATE record_end SET next = $1, at_ms = $2';

export async function endInDatabase(database: Database): Promise<LogEnd> {
  const [row] = await database.query<{ next: number; at_ms: number }>(read);
  return { next: row?.next ?? 0, atMs: row?.at_ms ?? 0 };
}

export async function storeEndInDatabase(database: Database, { next, atMs }: LogEnd): Promise<void> {
  await database.query(write, [next, atMs]);
}

export function endInFolder({ tables: { log }, jumpsMs }: ShardSide<Tables>): LogEnd {
  for (const { value } of log.getRange({ reverse: true, limit: 1 })) {
    return { next: endOfLog(log), atMs: newestTimeMs(value) + jumpsMs };
  }
  return { next: 0, atMs: 0 };
}

/** Stores the end in an empty batch: in a data folder the last batch marks the end of the log. */
export function storeEndInFolder(
  environment: Environment,
  { tables: { log }, jumpsMs }: ShardSide<Tables>,
  { next, atMs }: LogEnd,
): void {
  if (endOfLog(log) >= next) return;
  environment.writeSync(() => {
    log.putSync(sequenceKey(next - 1), emptyBatch(generateUuid(atMs - jumpsMs)));
  });
}
