import { createRequire } from 'node:module';
import type sortedBtree from 'sorted-btree';
import type { RowRange, Rows, StoredChange } from '../storage/tables/table-store.ts';

// The default export of a CommonJS module, which Node and the test runner import differently.
const { default: BTree, simpleComparator } = createRequire(import.meta.url)(
  'sorted-btree',
) as typeof sortedBtree;

/** Keys are texts in Latin-1, which have the order of their bytes and take half the memory and time of buffers. */
type Tree = sortedBtree.default<string, Buffer>;

/** The rows of a table in memory. Clones of the tree cost nothing, as they share what none of them changes. */
export class MemoryRows implements Rows {
  readonly #name: string;
  #tree: Tree = new BTree<string, Buffer>(undefined, simpleComparator);
  /** The rows before it, and its last change of each. */
  #draft: { before: Tree; changes: Map<string, StoredChange> } | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  get(key: Buffer): Buffer | undefined {
    return this.#tree.get(textOf(key));
  }

  has(key: Buffer): boolean {
    return this.#tree.has(textOf(key));
  }

  put(key: Buffer, value: Buffer): void {
    this.#change(key, Buffer.from(value));
  }

  delete(key: Buffer): boolean {
    const isThere = this.has(key);
    this.#change(key, undefined);
    return isThere;
  }

  *keys(range?: RowRange): Generator<Buffer> {
    for (const { key } of this.entries(range)) yield key;
  }

  /** Goes through a clone: the rows as they are now, whatever changes meanwhile. */
  *entries(range: RowRange = {}): Generator<{ key: Buffer; value: Buffer }> {
    const { reverse = false, limit = Number.POSITIVE_INFINITY } = range;
    const [start, end] = [range.start && textOf(range.start), range.end && textOf(range.end)];
    const tree = this.#tree.clone();
    if (tree.isEmpty) return;
    let left = limit;
    for (const [key, value] of reverse ? tree.entriesReversed(end, undefined, true) : tree.entries(start)) {
      const isBeyond = reverse ? start !== undefined && key < start : end !== undefined && key >= end;
      if (isBeyond || left <= 0) return;
      left -= 1;
      yield { key: Buffer.from(key, 'latin1'), value };
    }
  }

  count(range: RowRange = {}): number {
    if (range.start === undefined && range.end === undefined) return this.#tree.size;
    let count = 0;
    for (const _ of this.entries(range)) count += 1;
    return count;
  }

  /** Begins a draft, which changes go to until it ends. */
  begin(): void {
    this.#draft = { before: this.#tree, changes: new Map() };
    this.#tree = this.#tree.clone();
  }

  /** Takes the draft back. Returns the last change of each of its rows. */
  end(): StoredChange[] {
    const { before, changes } = this.#open();
    this.#tree = before;
    this.#draft = undefined;
    return [...changes.values()];
  }

  /** Applies a committed change. */
  take({ key, value }: StoredChange): void {
    if (value === undefined) this.#tree.delete(textOf(key));
    else this.#tree.set(textOf(key), value);
  }

  /** The caller may reuse the key. */
  #change(key: Buffer, value: Buffer | undefined): void {
    const change = { name: this.#name, key: Buffer.from(key), value };
    this.#open().changes.set(textOf(key), change);
    this.take(change);
  }

  #open() {
    if (this.#draft === undefined) throw new Error('a table is changed inside a transaction');
    return this.#draft;
  }
}

function textOf(key: Buffer): string {
  return key.toString('latin1');
}
