import type { IdempotencyLimits } from '../../../domain/idempotency.ts';
import type { Database } from '../connection/database.ts';
import { databaseTimeMs } from '../connection/database-time.ts';
import { dropPartition, keyPartitions, makePartitions, partitionsOf } from '../schema/partitions.ts';

/** Kept a little longer than keys are accepted, so that a request that is just in time finds its answer. */
const graceMs = 60_000;
/** A key is remembered for up to one part longer than it must be: statements look at each part, so they are few. */
const partsPerWindow = 8;
const partMsMin = 60_000;
/** Parts that are made ahead of the time that needs them. */
const partsAhead = 2;

const forgotten = `SELECT number FROM value WHERE name = 'forgotten' LIMIT 1`;
const forget = `
  INSERT INTO value AS t (name, number) VALUES ('forgotten', $1)
  ON CONFLICT (name) DO UPDATE SET number = greatest(t.number, excluded.number)`;

/**
 * Makes room for the idempotency keys that may come, and forgets those that may not come again: to be done before
 * the first is taken, and every minute from then on, by any number of nodes.
 */
export async function keepKeys(database: Database, limits: IdempotencyLimits): Promise<void> {
  const nowMs = await databaseTimeMs(database);
  const windowMs = limits.idempotencyWindowSeconds * 1_000;
  const partMs = Math.max(partMsMin, Math.ceil(windowMs / partsPerWindow));
  const overMs = nowMs - windowMs - graceMs;
  const [row] = await database.query<{ number: number }>(forgotten);
  const fromMs = Math.max(overMs, (row?.number ?? -1) + 1);
  const toMs = nowMs + limits.idempotencySkewSeconds * 1_000 + partsAhead * partMs;
  await makePartitions(database, keyPartitions, { fromMs, toMs }, partMs);
  for (const part of await partitionsOf(database, keyPartitions)) {
    if (part.toMs > overMs) return;
    await dropPartition(database, keyPartitions, part, (transaction) => {
      transaction.query(forget, [part.toMs - 1]);
    });
  }
}
