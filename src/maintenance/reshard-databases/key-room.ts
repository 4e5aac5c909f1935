import type { Database } from '../../storage/postgres/connection/database.ts';
import { keyPartitions, makePartitions, partitionsOf } from '../../storage/postgres/schema/partitions.ts';

const forgotten = `SELECT number FROM value WHERE name = 'forgotten'`;
const forget = `
  INSERT INTO value AS t (name, number) VALUES ('forgotten', $1)
  ON CONFLICT (name) DO UPDATE SET number = greatest(t.number, excluded.number)`;

/** The parts that idempotency keys of one database need in another; what was forgotten there stays forgotten. */
export async function makeKeyRoom(source: Database, target: Database): Promise<void> {
  for (const span of await partitionsOf(source, keyPartitions)) {
    await makePartitions(target, keyPartitions, span, span.toMs - span.fromMs);
  }
  const [row] = await source.query<{ number: number }>(forgotten);
  if (row !== undefined) await target.query(forget, [row.number]);
}
