/** Tables and rows as `test/storage/stored` has them, to the letter. */

import { rmSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import { createLog } from '../../../src/core/telemetry/log.ts';
import { uuidTimeMs } from '../../../src/core/uuid.ts';
import { rowsInDatabase } from '../../../src/maintenance/copy/database-rows.ts';
import type { Part } from '../../../src/maintenance/parts/part.ts';
import { Database } from '../../../src/storage/postgres/connection/database.ts';
import {
  keyPartitions,
  makePartitions,
  recordPartitions,
} from '../../../src/storage/postgres/schema/partitions.ts';
import { createMigrated, dropDatabase } from '../../harness/postgres/postgres.ts';
import { temporaryFolder } from '../../harness/server/server.ts';
import {
  bytesOf,
  copiedShard,
  copyRows,
  openStored,
  readStored,
  rowsOf,
  storedShard,
} from '../stored/stored-shard.ts';

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Tables and indexes as the catalogue has them: nothing of it changes but by a migration. */
const catalogue = `
  SELECT concat_ws(' ', c.relname, c.relpersistence, pg_get_partkeydef(c.oid), c.reloptions::text) AS of_table,
    CASE WHEN c.relkind IN ('i', 'I') THEN pg_get_indexdef(c.oid) ELSE (
      SELECT string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), l.collname,
        CASE WHEN a.attnotnull THEN 'NOT NULL' END), ', ' ORDER BY a.attnum)
      FROM pg_attribute a LEFT JOIN pg_collation l ON l.oid = a.attcollation
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) END AS has
  FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace ORDER BY c.relname`;

async function withDatabase(use: (database: Database) => Promise<void>): Promise<void> {
  const url = await createMigrated();
  const log = createLog('silent');
  const database = new Database({ url, connectionsMax: 2, timeoutMilliseconds: 10_000, log });
  try {
    await use(database);
  } finally {
    await database.close();
    await dropDatabase(url);
  }
}

async function tableText(database: Database, { table }: Part): Promise<string> {
  const rows = await database.query<{ row: string }>(
    `SELECT to_jsonb(t)::text AS row FROM ${table.name} t ORDER BY ${table.name === 'record' ? 'position' : '1'}`,
  );
  return rows.map(({ row }) => `${table.name} ${row}\n`).join('');
}

it('the tables of a database are what the migrations made them, to the letter', async () => {
  await withDatabase(async (database) => {
    const rows = await database.query<{ of_table: string; has: string }>(catalogue);
    const text = rows.map(({ of_table, has }) => `${of_table}: ${has}\n`).join('');
    expect(text).toBe(readStored('catalogue.txt'));
  });
});

it('a shard is copied into the rows that it always was, and comes back as the bytes that it had', async () => {
  const stored = await openStored(`${folder}/stored`, storedShard);
  const written = await openStored(`${folder}/written`, { times: storedShard.times ?? [] });
  await withDatabase(async (database) => {
    const dayMs = 86_400_000;
    const idTimes = (storedShard.idempotency ?? []).map(([key]) => uuidTimeMs(Buffer.from(key, 'hex')));
    const span = { fromMs: Math.min(...idTimes), toMs: Math.max(...idTimes) + 1 };
    await makePartitions(database, keyPartitions, span, dayMs);
    const storedTimes = rowsOf(stored.part('records')).map((row) => Number(row.stored_at_ms));
    const recordSpan = { fromMs: Math.min(...storedTimes), toMs: Math.max(...storedTimes) + 1 };
    await makePartitions(database, recordPartitions, recordSpan, dayMs);
    let text = '';
    for (const part of stored.parts) {
      await database.query(part.table.put, part.table.rowsOf(rowsOf(part)));
      text += await tableText(database, part);
    }
    expect(text).toBe(readStored('rows.txt'));
    for (const part of written.parts) {
      for await (const rows of rowsInDatabase(database, part))
        await copyRows(rows, part, written.environment);
    }
  });
  expect({ ...bytesOf(written.environment), counts: storedShard.counts }).toEqual(copiedShard);
  await stored.environment.close();
  await written.environment.close();
});
