import { generateUuid } from '../../core/uuid.ts';
import type { Environment } from '../../storage/lmdb/environment/environment.ts';
import { sequenceKey } from '../../storage/lmdb/layout/keys.ts';
import type { Tables } from '../../storage/lmdb/layout/tables.ts';
import { endOfLog } from '../../storage/lmdb/log/ingest-log.ts';
import { emptyBatch, newestTimeMs } from '../../storage/lmdb/log/log-batch.ts';
import type { Database } from '../../storage/postgres/connection/database.ts';
import type { ShardSide } from '../parts/part.ts';

/** Where a log ends: no record that comes later may stand where one has been, even if that is there no more. */
export interface LogEnd {
  next: number;
  /** When the last one was stored; 0 where nobody knows. */
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

/** In a data folder the last batch says where the log ends. */
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
