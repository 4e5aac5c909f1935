import { Environment } from '../../../src/storage/lmdb/environment/environment.ts';
import { tableNames } from '../../../src/storage/lmdb/layout/tables.ts';

/** An environment of a test's own, with a shard's tables unless it names others. */
export function openEnvironment(
  path: string,
  tables: readonly string[] = tableNames,
  mapBytesMax = 1024 ** 3,
): Environment {
  const commits = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  return new Environment({ path, tables, mapBytesMax, readersMax: 64, commits });
}
