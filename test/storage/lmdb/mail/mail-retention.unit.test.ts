import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { Table } from '../../../../src/storage/lmdb/environment/stored-tables.ts';
import { RetentionWalk } from '../../../../src/storage/lmdb/mail/mail-retention.ts';
import { temporaryFolder } from '../../../harness/server/server.ts';
import { openEnvironment } from '../../../harness/storage/environment.ts';

const folder = temporaryFolder();
const environment = openEnvironment(join(folder, 'data.mdb'), ['kept']);
const table: Table = environment.table('kept');
const limit = 1_000;
const over = Buffer.from('over');

afterAll(async () => {
  await environment.close();
  rmSync(folder, { recursive: true, force: true });
});

async function fill(count: number, recordOf: (index: number) => Buffer): Promise<void> {
  await environment.write(() => {
    for (const key of table.getKeys({})) table.removeSync(key);
    for (let index = 0; index < count; index += 1) {
      const key = Buffer.alloc(4);
      key.writeUInt32BE(index);
      table.putSync(key, recordOf(index));
    }
  });
}

/** Sweeps as the sweeper does: goes on for as long as the answer is the limit. Answers how many steps it took. */
async function sweep(walk: RetentionWalk): Promise<number> {
  for (let steps = 1; ; steps += 1) {
    let answer = 0;
    await environment.write(() => {
      answer = walk.step(limit, undefined, (_, value) => value.equals(over));
    });
    if (answer < limit) return steps;
  }
}

const records = (): number => environment.sizeOf('kept').records;

it('what is over late among what is not goes with one sweep, wherever it lies', async () => {
  const kept = Buffer.from('kept');
  await fill(20_000, (index) => (index % 5_000 === 4_999 ? over : kept));
  const walk = new RetentionWalk(table);
  expect(await sweep(walk)).toBe(21);
  expect(records()).toBe(19_996);
});

it('a table that is very long is walked through in several sweeps', async () => {
  const kept = Buffer.from('kept');
  await fill(150_000, (index) => (index === 149_999 ? over : kept));
  const walk = new RetentionWalk(table);
  expect(await sweep(walk)).toBe(100);
  expect(records()).toBe(150_000);
  await sweep(walk);
  expect(records()).toBe(149_999);
});

it('a step reads a bounded number of bytes, and the next goes on behind them', async () => {
  const large = Buffer.alloc(512 * 1024);
  await fill(20, (index) => (index === 19 ? over : large));
  expect(await sweep(new RetentionWalk(table))).toBe(10);
  expect(records()).toBe(19);
});
