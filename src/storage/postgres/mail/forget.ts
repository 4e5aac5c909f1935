import type { BroadcastProgress } from '../../../domain/mail/broadcast.ts';
import { sweepRecordsMax } from '../../../domain/write.ts';
import { viewOf } from '../connection/bytes.ts';
import type { Transaction } from '../connection/database.ts';
import type { BroadcastMarkRow, SentRow } from '../schema/tables.ts';
import type { UnitOfWork } from '../writes/unit-of-work.ts';

/** Here and below, rows that another node is forgetting are left to it. */
const oldestSent = `
  SELECT once, device FROM sent WHERE $1::bytea IS NULL OR once < $1
  ORDER BY once, device LIMIT ${sweepRecordsMax} FOR UPDATE SKIP LOCKED`;
const oldestMarks = `
  SELECT t.broadcast, t.device FROM broadcast_mark t
  WHERE NOT EXISTS (
    SELECT 1 FROM unnest($1::bytea[], $2::text[]) AS k (broadcast, after)
    WHERE k.broadcast = t.broadcast AND t.device > k.after
  )
  ORDER BY t.broadcast, t.device LIMIT ${sweepRecordsMax} FOR UPDATE SKIP LOCKED`;

/** Of the oldest that sort before a UUIDv7, or of all. Answers how many. */
export async function pruneDedupeKeys(
  work: UnitOfWork,
  transaction: Transaction,
  before: Uint8Array | undefined,
): Promise<number> {
  const values = [before === undefined ? null : viewOf(before)];
  const rows = await transaction.query<Pick<SentRow, 'once' | 'device'>>(oldestSent, values);
  for (const row of rows) work.sent.remove(row);
  return rows.length;
}

/** But for devices that an active broadcast has not come to for good. Answers how many. */
export async function pruneBroadcastMarks(
  work: UnitOfWork,
  transaction: Transaction,
  active: readonly BroadcastProgress[],
): Promise<number> {
  const broadcasts = active.map(({ broadcast }) => viewOf(broadcast));
  const values = [broadcasts, active.map(({ after }) => after)];
  const rows = await transaction.query<BroadcastMarkRow>(oldestMarks, values);
  for (const row of rows) work.marks.remove(row);
  return rows.length;
}
