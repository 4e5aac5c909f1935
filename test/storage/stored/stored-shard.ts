import { readFileSync } from 'node:fs';
import type { Part } from '../../../src/maintenance/parts/part.ts';
import { shardParts, shardSideOf } from '../../../src/maintenance/parts/shard-parts.ts';
import type { Environment } from '../../../src/storage/lmdb/environment/environment.ts';
import { tableNames } from '../../../src/storage/lmdb/layout/tables.ts';
import type { Row } from '../../../src/storage/postgres/connection/database.ts';
import { openEnvironment } from '../../harness/storage/environment.ts';

/** Keys and values by table, in hexadecimal. */
type StoredTables = Readonly<Record<string, readonly (readonly [key: string, value: string])[]>>;

/** Reads a file beside this one. */
export const readStored = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');

/**
 * A shard with records of each kind, as the first format stores them, by a clock that had jumped by five days. This file
 * is never written again: with another format comes another one beside it.
 */
export const storedShard: StoredTables = JSON.parse(readStored('shard.json'));

interface StoredShard {
  environment: Environment;
  parts: Part[];
  part(name: string): Part;
}

/** Opens an environment that has these records. */
export async function openStored(path: string, tables: StoredTables): Promise<StoredShard> {
  const environment = openEnvironment(path);
  await environment.write(() => {
    for (const [name, records] of Object.entries(tables)) {
      const table = environment.table(name);
      for (const [key, value] of records) table.putSync(Buffer.from(key, 'hex'), Buffer.from(value, 'hex'));
    }
  });
  const parts = shardParts(shardSideOf(environment), () => true);
  const part = (name: string): Part => {
    const found = parts.find((one) => one.name === name);
    if (found === undefined) throw new Error(`no part has the name ${name}`);
    return found;
  };
  return { environment, parts, part };
}

export function bytesOf(environment: Environment): StoredTables {
  return Object.fromEntries(
    tableNames.map((name) => {
      const records = [...environment.table(name).getRange({})];
      return [
        name,
        records.map(({ key, value }) => [key.toString('hex'), value.toString('hex', 0, value.length)]),
      ];
    }),
  );
}

/** All rows of a part. */
export const rowsOf = (part: Part): Row[] =>
  [...part.source.getRange({})].flatMap((record) => part.rowsOf(record));

export async function copyRows(rows: readonly Row[], part: Part, environment: Environment): Promise<void> {
  await environment.write(() => part.write(rows));
}

/** Bytes of a dead letter in front of when its mail would have expired: reason, time of death, and of the mail the rest. */
const letterExpiryAt = 7 + 28;
const timeBytes = 6;

/** The shard as a copy through rows leaves it: rows of dead letters do not have when their mail would have expired. */
export const copiedShard: StoredTables = {
  ...storedShard,
  // Made anew out of the log.
  logIndex: [],
  // There were none yet.
  replies: [],
  replaceable: [],
  // Counted again at the end of a copy.
  fleetMail: [],
  dead: (storedShard.dead ?? []).map(([key, value]) => {
    const letter = Buffer.from(value, 'hex').fill(0, letterExpiryAt, letterExpiryAt + timeBytes);
    return [key, letter.toString('hex')];
  }),
};
