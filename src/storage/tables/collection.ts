import type { ValueCodec } from './codec.ts';
import { type KeyCodec, type KeyPrefix, type KeyTuple, rangeUnder } from './key-codec.ts';
import type { RowRange, Rows, StoredChange, TableStore } from './table-store.ts';

/** Layout of a table: declared once, for those who read and write it and for its verification. */
export interface TableLayout<K extends KeyTuple, V> {
  name: string;
  key: KeyCodec<K>;
  value: ValueCodec<V>;
  /** True if the value is that of its key. Absent: it says nothing of it. */
  isOwn?(key: K, value: V): boolean;
}

/** @throws Error if it is not a row of that table. */
export function decodeRow<K extends KeyTuple, V>(
  layout: TableLayout<K, V>,
  row: { key: Buffer; value: Buffer },
): [K, V] {
  const key = layout.key.decode(row.key);
  const value = layout.value.decode(row.value);
  if (layout.isOwn?.(key, value) === false) throw new Error('not the value of its key');
  return [key, value];
}

/** Which of the rows under a prefix: those between two keys, and so many of them. */
export interface Slice<K> {
  after?: K | undefined;
  before?: K | undefined;
  reverse?: boolean;
  limit?: number;
}

/** Handles a row that does not decode. */
type OnDamage = (key: Buffer, error: unknown) => void;

const refuse: OnDamage = (_, error) => {
  throw error;
};

function attempt<T>(decode: () => T, key: Buffer, onDamage: OnDamage): T | undefined {
  try {
    return decode();
  } catch (error) {
    onDamage(key, error);
    return undefined;
  }
}

/** The rows of a table as keys and values. Changed inside a write transaction only. */
export class Collection<K extends KeyTuple, V> {
  readonly #layout: TableLayout<K, V>;
  readonly #rows: Rows;

  constructor(store: Pick<TableStore, 'rows'>, layout: TableLayout<K, V>) {
    this.#layout = layout;
    this.#rows = store.rows(layout.name);
  }

  /** @throws Error if it is damaged. */
  get(key: K): V | undefined {
    const value = this.#rows.get(this.#encode(key));
    return value && this.#layout.value.decode(value);
  }

  has(key: K): boolean {
    return this.#rows.has(this.#encode(key));
  }

  /** Returns the bytes of the value. */
  put(key: K, value: V): number {
    const bytes = this.#layout.value.encode(value);
    this.#rows.put(this.#encode(key), bytes);
    return bytes.length;
  }

  /** Returns whether it was there. */
  delete(key: K): boolean {
    return this.#rows.delete(this.#encode(key));
  }

  /** Goes through the rows under a prefix. @throws Error at a damaged one, unless `onDamage` does otherwise. */
  *entries(prefix: KeyPrefix<K>, slice: Slice<K> = {}, onDamage = refuse): Generator<[K, V]> {
    for (const row of this.#rows.entries(this.#range(prefix, slice))) {
      const decoded = attempt(() => decodeRow(this.#layout, row), row.key, onDamage);
      if (decoded !== undefined) yield decoded;
    }
  }

  *keys(prefix: KeyPrefix<K>, slice: Slice<K> = {}): Generator<K> {
    for (const key of this.#rows.keys(this.#range(prefix, slice))) yield this.#layout.key.decode(key);
  }

  /** Up to `limit` rows, fewer where the next would be beyond `bytesMax`, and whether there are more. */
  list(
    prefix: KeyPrefix<K>,
    { limit, bytesMax = Number.POSITIVE_INFINITY, ...slice }: Slice<K> & { limit: number; bytesMax?: number },
  ): { rows: [K, V][]; hasMore: boolean } {
    const rows: [K, V][] = [];
    let bytes = 0;
    for (const row of this.#rows.entries(this.#range(prefix, { ...slice, limit: limit + 1 }))) {
      bytes += row.value.length;
      const isBeyond = bytes > bytesMax && rows.length > 0;
      if (isBeyond || rows.length === limit) return { rows, hasMore: true };
      rows.push(decodeRow(this.#layout, row));
    }
    return { rows, hasMore: false };
  }

  count(prefix: KeyPrefix<K>): number {
    return this.#rows.count(this.#range(prefix, {}));
  }

  /** Deletes the rows under a prefix, up to `limit`; returns how many. */
  deletePrefix(prefix: KeyPrefix<K>, limit?: number): number {
    const keys = [...this.#rows.keys(this.#range(prefix, limit === undefined ? {} : { limit }))];
    for (const key of keys) this.#rows.delete(key);
    return keys.length;
  }

  /** Changes by other nodes in this table; without a value it is deleted. */
  *changed(changes: readonly StoredChange[], onDamage = refuse): Generator<[K, V | undefined]> {
    const { name, key: codec } = this.#layout;
    for (const { key, value } of changes.filter((one) => one.name === name)) {
      const decode = (): [K, V | undefined] =>
        value === undefined ? [codec.decode(key), undefined] : decodeRow(this.#layout, { key, value });
      const decoded = attempt(decode, key, onDamage);
      if (decoded !== undefined) yield decoded;
    }
  }

  #encode(key: K): Buffer {
    return this.#layout.key.encode(key as KeyPrefix<K>);
  }

  #range(prefix: KeyPrefix<K>, { after, before, reverse = false, limit }: Slice<K>): RowRange {
    const range = rangeUnder(this.#layout.key.encode(prefix));
    // The next key after one is the same with a zero byte behind it.
    if (after !== undefined) range.start = Buffer.concat([this.#encode(after), Buffer.alloc(1)]);
    if (before !== undefined) range.end = this.#encode(before);
    return { ...range, reverse, ...(limit !== undefined && { limit }) };
  }
}
