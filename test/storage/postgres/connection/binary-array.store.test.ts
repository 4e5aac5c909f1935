import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createLog } from '../../../../src/core/telemetry/log.ts';
import { Database } from '../../../../src/storage/postgres/connection/database.ts';
import { createDatabase } from '../../../harness/postgres/postgres.ts';

const sent = `
  SELECT to_jsonb($1::text[]) AS text, to_jsonb($2::bytea[]) AS bytea, to_jsonb($3::bigint[]::text[]) AS bigint,
    to_jsonb($4::integer[]) AS integer, to_jsonb($5::smallint[]) AS smallint, to_jsonb($6::boolean[]) AS boolean,
    to_jsonb($7::jsonb[]) AS jsonb`;

const listOf = <T>(element: fc.Arbitrary<T>) => fc.array(fc.option(element), { maxLength: 5 });
const lists = fc.record({
  // No text of PostgreSQL has a zero byte.
  text: listOf(fc.string({ unit: 'binary' }).filter((given) => !given.includes('\0'))),
  bytea: listOf(fc.uint8Array()),
  bigint: listOf(fc.maxSafeInteger()),
  integer: listOf(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })),
  smallint: listOf(fc.integer({ min: -(2 ** 15), max: 2 ** 15 - 1 })),
  boolean: listOf(fc.boolean()),
  jsonb: listOf(fc.array(fc.integer())),
});

it('arrays of every type come to the database as they were given, whatever they hold', async () => {
  const url = await createDatabase();
  const database = new Database({
    url,
    connectionsMax: 1,
    timeoutMilliseconds: 10_000,
    log: createLog('silent'),
  });
  try {
    await fc.assert(
      fc.asyncProperty(lists, async ({ text, bytea, bigint, integer, smallint, boolean, jsonb }) => {
        const jsonTexts = jsonb.map((element) => element && JSON.stringify(element));
        const [row] = await database.query(sent, [
          text,
          bytea,
          bigint,
          integer,
          smallint,
          boolean,
          jsonTexts,
        ]);
        const hexTexts = bytea.map((element) => element && `\\x${Buffer.from(element).toString('hex')}`);
        const bigintTexts = bigint.map((element) => element?.toString() ?? null);
        expect(row).toEqual({
          text,
          bytea: hexTexts,
          bigint: bigintTexts,
          integer,
          smallint,
          boolean,
          jsonb,
        });
      }),
    );
  } finally {
    await database.close();
  }
});
