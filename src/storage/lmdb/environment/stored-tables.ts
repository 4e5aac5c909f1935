import type { Database, RangeOptions } from 'lmdb';
import type { RowRange, Rows } from '../../tables/table-store.ts';

/** A table of an environment: binary keys and values, in byte order of the keys. */
export type Table = Database<Buffer, Buffer>;

/** LMDB goes through a range in reverse from its other end, which it would then count in. */
function optionsOf({ start, end, reverse = false, limit }: RowRange): RangeOptions {
  const bounds = reverse
    ? { start: end, end: start, reverse, exclusiveStart: end !== undefined, inclusiveEnd: true }
    : { start, end };
  return { ...bounds, ...(limit !== undefined && { limit }) } as RangeOptions;
}

/** The rows of a table, for who knows no engine. */
export class LmdbRows implements Rows {
  readonly #table: Table;

  constructor(table: Table) {
    this.#table = table;
  }

  get(key: Buffer): Buffer | undefined {
    return this.#table.getBinary(key);
  }

  has(key: Buffer): boolean {
    return this.#table.doesExist(key);
  }

  put(key: Buffer, value: Buffer): void {
    this.#table.putSync(key, value);
  }

  delete(key: Buffer): boolean {
    return this.#table.removeSync(key);
  }

  keys(range: RowRange = {}): Iterable<Buffer> {
    return this.#table.getKeys(optionsOf(range));
  }

  entries(range: RowRange = {}): Iterable<{ key: Buffer; value: Buffer }> {
    return this.#table.getRange(optionsOf(range));
  }

  count(range: RowRange = {}): number {
    return this.#table.getKeysCount(optionsOf(range));
  }
}
