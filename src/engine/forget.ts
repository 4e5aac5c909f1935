import type { BroadcastProgress } from '../shard/broadcast.ts';
import { sweepRecordsMax } from '../shard/write.ts';
import type { Session, Transaction } from './database.ts';
import { viewOf } from './mailbox.ts';
import type { Work } from './work.ts';

/** Here and below, rows that another node is forgetting are left to it. */
const sentBefore = `
  WITH gone AS (
    DELETE FROM sent d USING (
      SELECT t.once, t.device FROM sent t WHERE $1::bytea IS NULL OR t.once < $1
      ORDER BY t.once, t.device LIMIT $2 FOR UPDATE SKIP LOCKED
    ) AS o
    WHERE d.once = o.once AND d.device = o.device RETURNING 1
  )
  SELECT count(*) AS gone FROM gone`;
const marksOf = `
  WITH gone AS (
    DELETE FROM broadcast_mark d USING (
      SELECT t.broadcast, t.device FROM broadcast_mark t
      WHERE NOT EXISTS (
        SELECT 1 FROM unnest($1::bytea[], $2::text[]) AS k (broadcast, after)
        WHERE k.broadcast = t.broadcast AND t.device > k.after
      )
      ORDER BY t.broadcast, t.device LIMIT $3 FOR UPDATE SKIP LOCKED
    ) AS o
    WHERE d.broadcast = o.broadcast AND d.device = o.device RETURNING 1
  )
  SELECT count(*) AS gone FROM gone`;

/** Of the oldest that sort before a UUIDv7, or of all. */
export function forgetSent(
  _: Work,
  transaction: Transaction,
  before: Uint8Array | undefined,
): Promise<number> {
  return countGone(transaction, sentBefore, [before === undefined ? null : viewOf(before), sweepRecordsMax]);
}

/** But for devices that an active broadcast has not come to for good. */
export function forgetBroadcasts(
  _: Work,
  transaction: Transaction,
  active: readonly BroadcastProgress[],
): Promise<number> {
  const broadcasts = active.map(({ broadcast }) => viewOf(broadcast));
  return countGone(transaction, marksOf, [broadcasts, active.map(({ after }) => after), sweepRecordsMax]);
}

/** Of a statement that answers how many rows it has removed. */
export async function countGone(session: Session, text: string, values: readonly unknown[]): Promise<number> {
  const [row] = await session.query<{ gone: number }>(text, values);
  return row?.gone ?? 0;
}
