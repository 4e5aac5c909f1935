import type { Database, Session, Transaction } from '../connection/database.ts';

/** A table that is cut by time into parts, each of which is dropped whole. */
export interface PartitionedTable {
  table: 'record' | 'idempotency';
  /** What stands for a time in its bounds, as SQL has it. */
  boundOf(timeMs: number): string;
}

export const recordPartitions: PartitionedTable = { table: 'record', boundOf: String };

/** A UUIDv7 begins with the 6 bytes of its time. */
export const keyPartitions: PartitionedTable = {
  table: 'idempotency',
  boundOf: (timeMs) => `'\\x${timeMs.toString(16).padStart(12, '0')}'`,
};

/** From a time to the one before which the next part begins. */
export interface PartitionSpan {
  fromMs: number;
  toMs: number;
}

/** Those who make or drop partitions do it one after another; the number is no other lock's of this program. */
const lock = 'SELECT pg_advisory_xact_lock(7310200701)';
const parts = `
  SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = to_regclass($1::text) LIMIT 10000`;
/** Everybody who writes waits behind whoever waits for a drop: not for long, it is tried again. */
const patience = `SET LOCAL lock_timeout = '200ms'`;

/** The parts that a table has, in order of time. Their names say which time is theirs. */
export async function partitionsOf(session: Session, { table }: PartitionedTable): Promise<PartitionSpan[]> {
  const rows = await session.query<{ name: string }>(parts, [table]);
  const spans = rows.flatMap(({ name }) => {
    const [, from, to] = /_(\d+)_(\d+)$/.exec(name) ?? [];
    return from === undefined || to === undefined ? [] : [{ fromMs: Number(from), toMs: Number(to) }];
  });
  return spans.sort((a, b) => a.fromMs - b.fromMs);
}

/** The name of a part, in the words of this program alone. */
export function nameOfPart({ table }: PartitionedTable, { fromMs, toMs }: PartitionSpan): string {
  return `${table}_${fromMs}_${toMs}`;
}

/** What is missing of a time, in spans that begin and end at multiples of `widthMs` or at those that are there. */
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
 * Makes the parts that a time needs and that are not there. Writes go on meanwhile, since a table that is attached
 * when it is made stops nobody, unlike one that is made as a part. Answers how many there were to make.
 */
export async function makePartitions(
  database: Database,
  of: PartitionedTable,
  wanted: PartitionSpan,
  widthMs: number,
): Promise<number> {
  // A look without the lock, as there is nothing to do almost always.
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
 * Drops a part unless another node has, with what `before` does in the same transaction. Whoever uses the table at
 * that moment is waited for, and if that takes too long it fails. @throws ApiError unavailable
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
