/** Query plans of a database without statistics. */

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createMigrated } from '../../harness/postgres/postgres.ts';
import { deviceOf, MailNode, prepare } from './mail-node.ts';

/** Devices, as many as make a scan of all of them stand out, and some more than one batch. */
const devices = 300;
const mailsPerDevice = 30;
/** Looks at a mail's rows and entries, from when it is queued until it is settled and named in a receipt. */
const looksMax = 10;

describe('statements of a database that has counted nothing in its tables', () => {
  let node: MailNode;
  beforeAll(async () => {
    const url = await createMigrated();
    await prepare(url, devices);
    node = new MailNode(url);
  });
  afterAll(() => node.close());

  const all = <T>(what: (number: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: devices }, (_, index) => what(index + 1)));

  const cycle = async (count: number): Promise<void> => {
    const ids = await all((number) =>
      Promise.all(Array.from({ length: count }, () => node.send(deviceOf(number)))),
    );
    await all(async (number) => {
      for (const id of ids[number - 1] ?? []) await node.settle(deviceOf(number), id, 'reject');
    });
  };

  const looks = async (): Promise<Record<string, number>> => {
    const rows = await node.database.query<{ name: string; looks: number }>(`
      SELECT t.relname AS name, (t.seq_tup_read + coalesce(sum(i.idx_tup_read), 0))::bigint AS looks
      FROM pg_stat_user_tables t LEFT JOIN pg_stat_user_indexes i USING (relid) GROUP BY 1, t.seq_tup_read`);
    return Object.fromEntries(rows.map(({ name, looks }) => [name, looks]));
  };

  it('a queue that was empty when it was counted is read row by row all the same when it is full', async () => {
    // Repeats until each connection goes by a plan for all values.
    for (let round = 0; round < 10; round += 1) await cycle(1);
    const queues = ['mail', 'receipt', 'dead_letter', 'stream'];
    for (const table of queues) {
      await node.database.query(`DELETE FROM ${table}`);
      await node.database.query(`VACUUM (ANALYZE) ${table}`);
    }
    await node.database.query('SELECT pg_stat_reset()');
    await cycle(mailsPerDevice);
    // Counts are told by each connection a while after its transactions.
    await vi.waitFor(
      async () => {
        const found = await looks();
        expect(found.receipt).toBeGreaterThan(0);
        await new Promise((resolve) => setTimeout(resolve, 1_200));
        expect(await looks()).toMatchObject({ receipt: found.receipt, mail: found.mail });
      },
      { timeout: 30_000 },
    );
    const found = await looks();
    for (const table of queues)
      expect.soft(found[table], table).toBeLessThan(looksMax * devices * mailsPerDevice);
  });
});
