import { generateUuid } from '../core/uuid.ts';
import type { Database } from '../engine/database.ts';
import { endOfLog } from '../shard/ingest-log.ts';
import { sequenceKey } from '../shard/keys.ts';
import { emptyBatch, newestTimeMs } from '../shard/log-batch.ts';
import type { Tables } from '../shard/tables.ts';
import type { Environment } from '../store/environment.ts';
import type { ShardSide } from './part.ts';

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
