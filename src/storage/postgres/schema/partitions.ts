import type { Database, Session, Transaction } from '../connection/database.ts';

/** A table partitioned by time, so that whole partitions can be dropped. */
export interface PartitionedTable {
  table: 'record' | 'idempotency';
  /** SQL for a time in the partition bounds. */
  boundOf(timeMs: number): string;
}

export const recordPartitions: PartitionedTable = { table: 'record', boundOf: String };

/** A UUIDv7 begins with the 6 bytes of its time. */
export const keyPartitions: PartitionedTable = {
  table: 'idempotency',
  boundOf: (timeMs) => `'\\x${timeMs.toString(16).padStart(12, '0')}'`,
};

/** From a time, inclusive, to the start of the next partition. */
export interface PartitionSpan {
  fromMs: number;
  toMs: number;
}

/** Serializes creating and dropping of partitions; the number is unique among the locks of this program. */
const lock = 'SELECT pg_advisory_xact_lock(7310200701)';
const parts = `
  SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = to_regclass($1::text) LIMIT 10000`;
const unindexed = `
  SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = to_regclass('record') AND NOT EXISTS (
    SELECT FROM pg_inherits x JOIN pg_index n ON n.indexrelid = x.inhrelid
    WHERE x.inhparent = to_regclass('record_by_device') AND n.indrelid = c.oid)
  LIMIT 10000`;
/** All writers queue behind a waiting drop, so it gives up soon and is retried. */
const patience = `SET LOCAL lock_timeout = '200ms'`;

/** The partitions of a table, in order of time, which their names contain. */
export async function partitionsOf(session: Session, { table }: PartitionedTable): Promise<PartitionSpan[]> {
  return spansOf(await session.query<{ name: string }>(parts, [table]));
}

/** Those of the log without an index by device: they are older than it. */
export async function unindexedRecordParts(session: Session): Promise<PartitionSpan[]> {
  return spansOf(await session.query<{ name: string }>(unindexed));
}

function spansOf(rows: readonly { name: string }[]): PartitionSpan[] {
  const spans = rows.flatMap(({ name }) => {
    const [, from, to] = /_(\d+)_(\d+)$/.exec(name) ?? [];
    return from === undefined || to === undefined ? [] : [{ fromMs: Number(from), toMs: Number(to) }];
  });
  return spans.sort((a, b) => a.fromMs - b.fromMs);
}

/** Name of a partition; safe in SQL, since nothing in it comes from outside. */
export function nameOfPart({ table }: PartitionedTable, { fromMs, toMs }: PartitionSpan): string {
  return `${table}_${fromMs}_${toMs}`;
}

/** The missing spans of a time, cut at multiples of `widthMs` and at existing partitions. */
function missingSpans(
  there: readonly PartitionSpan[],
  wanted: PartitionSpan,
  widthMs: number,
): PartitionSpan[] {
  const missing: PartitionSpan[] = [];
  let fromMs = Math.floor(wanted.fromMs / widthMs) * widthMs;
  const endMs = Math.ceil(wanted.toMs / widthMs) * widthMs;
  for (const span of [...there, { fromMs: endMs, toMs: endMs }]) {
    for (const untilMs = Math.min(span.fromMs, endMs); fromMs < untilMs; ) {
      const toMs = Math.min((Math.floor(fromMs / widthMs) + 1) * widthMs, untilMs);
      missing.push({ fromMs, toMs });
      fromMs = toMs;
    }
    fromMs = Math.max(fromMs, span.toMs);
  }
  return missing;
}

/**
 * Creates the missing partitions of a time and returns how many. Writes continue meanwhile, since attaching a table
 * blocks nobody, unlike creating it as a partition.
 */
export async function makePartitions(
  database: Database,
  of: PartitionedTable,
  wanted: PartitionSpan,
  widthMs: number,
): Promise<number> {
  // Checks without the lock first: almost always there is nothing to do.
  if (missingSpans(await partitionsOf(database, of), wanted, widthMs).length === 0) return 0;
  return database.transaction(async (transaction) => {
    await transaction.query(lock);
    const missing = missingSpans(await partitionsOf(transaction, of), wanted, widthMs);
    for (const span of missing) {
      const name = nameOfPart(of, span);
      const [from, to] = [of.boundOf(span.fromMs), of.boundOf(span.toMs)];
      transaction.query(`CREATE TABLE ${name} (LIKE ${of.table} INCLUDING ALL)`);
      transaction.query(
        `ALTER TABLE ${of.table} ATTACH PARTITION ${name} FOR VALUES FROM (${from}) TO (${to})`,
      );
    }
    await transaction.commit();
    return missing.length;
  });
}

/**
 * Drops a partition unless another node has, and runs `before` in the same transaction. Waits for current users of the
 * table, and fails if that takes too long. @throws ApiError unavailable
 */
export function dropPartition(
  database: Database,
  of: PartitionedTable,
  span: PartitionSpan,
  before: (transaction: Transaction) => void,
): Promise<boolean> {
  return database.transaction(async (transaction) => {
    await transaction.query(lock);
    const there = await partitionsOf(transaction, of);
    const isThere = there.some(({ fromMs, toMs }) => fromMs === span.fromMs && toMs === span.toMs);
    if (isThere) {
      before(transaction);
      transaction.query(patience);
      transaction.query(`DROP TABLE ${nameOfPart(of, span)}`);
    }
    await transaction.commit();
    return isThere;
  });
}

/** Makes the index by device of a part of the log to which nobody writes. @throws ApiError unavailable */
export async function indexPartition(database: Database, span: PartitionSpan): Promise<void> {
  const part = nameOfPart(recordPartitions, span);
  await database.transaction(async (transaction) => {
    await transaction.query(lock);
    const there = await unindexedRecordParts(transaction);
    if (there.some(({ fromMs, toMs }) => fromMs === span.fromMs && toMs === span.toMs)) {
      transaction.query(`CREATE INDEX ${part}_by_device ON ${part} (device, position)`);
      transaction.query(`ALTER INDEX record_by_device ATTACH PARTITION ${part}_by_device`);
    }
    await transaction.commit();
  });
}
