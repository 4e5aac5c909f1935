import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import {
  checkPage,
  findNode,
  type Node,
  overflowPages,
  PageKind,
  readNode,
  readTree,
  type Tree,
} from './page.ts';

/** LMDB's name for the data file in an environment's folder. */
export const recordsFile = 'data.mdb';

/** Damage of a file, described as a sentence. */
export class Damage extends Error {
  override name = 'Damage';
}

/** MDB_meta, after the header of each of the first two pages. */
const magic = 0xbeefc0de;
const formatVersion = 2;
const metaAt = 24;
const treesAt = metaAt + 24;
const treeBytes = 48;
const lastPageAt = treesAt + 2 * treeBytes;
const metaBytes = lastPageAt + 16;

interface Meta {
  pageBytes: number;
  /** Trees of the free pages, and of the tables by name. */
  free: Tree;
  main: Tree;
  lastPage: number;
  transaction: number;
}

const cachedPagesMax = 4_096;

/**
 * Reads the file of a closed environment without LMDB, which trusts damaged pages and may crash the process. Layout:
 * mdb.c of lmdb-js, 64-bit, little-endian.
 */
export class DatabaseFile {
  readonly path: string;
  readonly #file: number;
  readonly #pages: number;
  readonly #meta: Meta;
  readonly #visited: Uint8Array;
  readonly #cache = new Map<number, Buffer>();

  /** @throws Damage, or Node's error if the file cannot be opened. */
  constructor(folder: string) {
    this.path = join(folder, recordsFile);
    this.#file = openSync(this.path, 'r');
    try {
      const metas = this.#readMetas();
      this.#meta = metas[0].transaction > metas[1].transaction ? metas[0] : metas[1];
      this.#pages = Math.floor(fstatSync(this.#file).size / this.#meta.pageBytes);
      this.#visited = new Uint8Array(Math.ceil(this.#pages / 8));
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** True if the file ends before its last page: LMDB omits free pages at the end, a truncation loses more. */
  get isShort(): boolean {
    return this.#pages <= this.#meta.lastPage;
  }

  close(): void {
    closeSync(this.#file);
  }

  /** Lists the tables by name. @throws Damage */
  tables(): Map<string, StoredTable> {
    const found = new Map<string, StoredTable>();
    const broken: Damage[] = [];
    for (const { key, value, isTree } of this.walk(this.#meta.main, (damage) => broken.push(damage))) {
      if (!isTree || value.length !== treeBytes) throw new Damage('the list of its tables is damaged');
      // lmdb-js ends a table's name with a zero byte.
      found.set(key.toString('latin1').replace(/\0$/, ''), new StoredTable(this, readTree(value, 0)));
    }
    if (broken[0] !== undefined) throw broken[0];
    return found;
  }

  /** Checks the pages of LMDB's free list. */
  checkFreePages(onDamage: (damage: Damage) => void): void {
    for (const _ of this.walk(this.#meta.free, onDamage));
  }

  /** Yields every record of a tree, in order, continuing after damaged pages. Each page may occur once only. */
  *walk(tree: Tree, onDamage: (damage: Damage) => void): Generator<WalkedRecord> {
    if (tree.root === undefined) return;
    yield* this.#walk(tree.root, 1, tree.depth, onDamage);
  }

  /** Reads the value of a key. @throws Damage on the path to it. */
  get(tree: Tree, key: Buffer): Buffer | undefined {
    if (tree.root === undefined) return undefined;
    let number = tree.root;
    try {
      for (let depth = 1; depth <= tree.depth; depth += 1) {
        const page = this.#cachedPage(number);
        const kind = checkPage(page, number);
        const node = findNode(page, kind, key);
        if (kind !== PageKind.branch) return node?.key.equals(key) ? this.#value(node) : undefined;
        if (node === undefined) return undefined;
        number = node.child;
      }
    } catch (error) {
      throw asDamage(error, number);
    }
    throw new Damage(`page ${number} is deeper than its tree`);
  }

  *#walk(
    number: number,
    depth: number,
    depthOfLeaves: number,
    onDamage: (damage: Damage) => void,
  ): Generator<WalkedRecord> {
    let page: Buffer;
    let kind: PageKind;
    try {
      this.#markVisited(number, 1);
      page = this.#page(number);
      kind = checkPage(page, number);
      if (kind === PageKind.overflow || (kind === PageKind.leaf) !== (depth === depthOfLeaves)) {
        throw new Damage(`page ${number} has the wrong kind for its level of the tree`);
      }
    } catch (error) {
      onDamage(asDamage(error, number));
      return;
    }
    const count = page.readUInt16LE(20) >> 1;
    for (let index = 0; index < count; index += 1) {
      let record: WalkedRecord;
      try {
        const node = readNode(page, index, kind);
        if (kind === PageKind.branch) {
          yield* this.#walk(node.child, depth + 1, depthOfLeaves, onDamage);
          continue;
        }
        if (node.overflow !== undefined) this.#markVisited(node.overflow.page, node.overflow.pages);
        record = { key: node.key, value: this.#value(node), isTree: node.isTree };
      } catch (error) {
        onDamage(asDamage(error, number));
        continue;
      }
      yield record;
    }
  }

  #value({ value, overflow }: Node): Buffer {
    if (overflow === undefined) return value;
    const { page, pages, bytes } = overflow;
    const run = this.#page(page, pages);
    if (checkPage(run.subarray(0, this.#meta.pageBytes), page) !== PageKind.overflow) {
      throw new Damage(`page ${page} does not hold the long value it should`);
    }
    if (overflowPages(run) !== pages || run.length < 24 + bytes) {
      throw new Damage(`page ${page} holds a long value of another length`);
    }
    return run.subarray(24, 24 + bytes);
  }

  #cachedPage(number: number): Buffer {
    let page = this.#cache.get(number);
    if (page === undefined) {
      page = this.#page(number);
      if (this.#cache.size >= cachedPagesMax) this.#cache.clear();
      this.#cache.set(number, page);
    }
    return page;
  }

  #page(number: number, count = 1): Buffer {
    const { pageBytes } = this.#meta;
    if (number + count > this.#pages)
      throw new Damage(`the file ends before page ${number}, which is in use`);
    const page = Buffer.allocUnsafe(count * pageBytes);
    readSync(this.#file, page, 0, page.length, number * pageBytes);
    return page;
  }

  /** Marks pages as visited. */
  #markVisited(first: number, count: number): void {
    if (first < 2 || first + count > this.#meta.lastPage + 1) {
      throw new Damage(`page ${first} is in use but out of bounds`);
    }
    for (let number = first; number < Math.min(first + count, this.#pages); number += 1) {
      const bit = 1 << (number & 7);
      if (((this.#visited[number >> 3] ?? 0) & bit) !== 0) throw new Damage(`page ${number} is used twice`);
      this.#visited[number >> 3] = (this.#visited[number >> 3] ?? 0) | bit;
    }
  }

  #readMetas(): [Meta, Meta] {
    const first = this.#readMeta(0);
    return [first, this.#readMeta(first.pageBytes)];
  }

  #readMeta(at: number): Meta {
    const bytes = Buffer.alloc(metaBytes);
    if (readSync(this.#file, bytes, 0, metaBytes, at) < metaBytes) throw new Damage('it is cut off');
    if (bytes.readUInt32LE(metaAt) !== magic) throw new Damage('its first pages are overwritten');
    if ((bytes.readUInt32LE(metaAt + 4) & 0xffff) !== formatVersion) {
      throw new Damage('it is of another version of LMDB, or overwritten');
    }
    const pageBytes = bytes.readUInt32LE(treesAt);
    if (pageBytes < 512 || pageBytes > 65_536 || (pageBytes & (pageBytes - 1)) !== 0) {
      throw new Damage('its first pages are overwritten');
    }
    return {
      pageBytes,
      free: readTree(bytes, treesAt),
      main: readTree(bytes, treesAt + treeBytes),
      lastPage: Number(bytes.readBigUInt64LE(lastPageAt)),
      transaction: Number(bytes.readBigUInt64LE(lastPageAt + 8)),
    };
  }
}

function asDamage(error: unknown, page: number): Damage {
  if (error instanceof Damage) return error;
  // Node throws a RangeError for a field outside its page.
  if (error instanceof RangeError) return new Damage(`page ${page} is overwritten`);
  throw error;
}

interface WalkedRecord {
  key: Buffer;
  value: Buffer;
  /** True if the value is the root of a tree, as in the list of tables. */
  isTree: boolean;
}

/** A table of a `DatabaseFile`. */
export class StoredTable {
  readonly #file: DatabaseFile;
  readonly #tree: Tree;

  constructor(file: DatabaseFile, tree: Tree) {
    this.#file = file;
    this.#tree = tree;
  }

  /** The stored record count. */
  get size(): number {
    return this.#tree.entries;
  }

  /** Yields every record in key order, reporting and skipping damage. */
  *entries(onDamage: (damage: Damage) => void): Generator<{ key: Buffer; value: Buffer }> {
    let before: Buffer | undefined;
    let count = 0;
    for (const { key, value } of this.#file.walk(this.#tree, onDamage)) {
      if (before !== undefined && before.compare(key) >= 0) onDamage(new Damage('its keys are not in order'));
      before = key;
      count += 1;
      yield { key, value };
    }
    if (count !== this.#tree.entries) {
      onDamage(new Damage(`it says that it has ${this.#tree.entries} records, and has ${count}`));
    }
  }

  /** @throws Damage */
  get(key: Buffer): Buffer | undefined {
    return this.#file.get(this.#tree, key);
  }
}
