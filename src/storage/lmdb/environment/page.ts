/**
 * LMDB's pages (mdb.c: MDB_page_header, MDB_node, MDB_db): number 8, transaction 8, padding 2, flags 2; then in a
 * tree's page the bounds of its free space 2 and 2, in a long value's first page the page count 4. After the header
 * come the offsets of the nodes, 2 each, counted from the header's end.
 */
const headerBytes = 24;
const nodeHeaderBytes = 8;
const noPage = 0xffffffffffffffffn;

export enum PageKind {
  branch = 1,
  leaf = 2,
  overflow = 4,
}

const overflowNode = 1;
const treeNode = 2;

/** The root of a B-tree. */
export interface Tree {
  depth: number;
  entries: number;
  /** Undefined for an empty tree. */
  root: number | undefined;
}

export function readTree(bytes: Buffer, at: number): Tree {
  const root = bytes.readBigUInt64LE(at + 40);
  return {
    depth: bytes.readUInt16LE(at + 6),
    entries: Number(bytes.readBigUInt64LE(at + 32)),
    root: root === noPage ? undefined : Number(root),
  };
}

/** Validates a page's header and returns its kind. @throws RangeError */
export function checkPage(page: Buffer, number: number): PageKind {
  const kind = page.readUInt16LE(18) as PageKind;
  if (Number(page.readBigUInt64LE(0)) !== number) throw new RangeError('page number');
  if (kind === PageKind.overflow) return kind;
  if (kind !== PageKind.branch && kind !== PageKind.leaf) throw new RangeError('page kind');
  const lower = page.readUInt16LE(20);
  const upper = page.readUInt16LE(22);
  if (lower % 2 !== 0 || lower === 0 || lower > upper || upper > page.length - headerBytes) {
    throw new RangeError('bounds of a page');
  }
  return kind;
}

/** The stored page count of a long value. */
export function overflowPages(page: Buffer): number {
  return page.readUInt32LE(20);
}

export interface Node {
  key: Buffer;
  /** In a branch page: the page below. */
  child: number;
  /** In a leaf page, if the value is inline. */
  value: Buffer;
  isTree: boolean;
  /** In a leaf page, if the value is in overflow pages. */
  overflow: { page: number; pages: number; bytes: number } | undefined;
}

/** @throws RangeError if it does not fit its page. */
export function readNode(page: Buffer, index: number, kind: PageKind): Node {
  const offset = page.readUInt16LE(headerBytes + 2 * index);
  if (offset < page.readUInt16LE(22)) throw new RangeError('offset of a node');
  const at = headerBytes + offset;
  const size = page.readUInt32LE(at);
  const flags = page.readUInt16LE(at + 4);
  const keyAt = at + nodeHeaderBytes;
  const valueAt = keyAt + page.readUInt16LE(at + 6);
  if (valueAt > page.length) throw new RangeError('key of a node');
  const key = page.subarray(keyAt, valueAt);
  if (kind === PageKind.branch) {
    const child = size + flags * 2 ** 32;
    return { key, child, value: page.subarray(0, 0), isTree: false, overflow: undefined };
  }
  if ((flags & overflowNode) !== 0) {
    const overflow = {
      page: Number(page.readBigUInt64LE(valueAt)),
      pages: Number(page.readBigUInt64LE(valueAt + 16)),
      bytes: size,
    };
    return { key, child: 0, value: page.subarray(0, 0), isTree: false, overflow };
  }
  if (valueAt + size > page.length) throw new RangeError('value of a node');
  const value = page.subarray(valueAt, valueAt + size);
  return { key, child: 0, value, isTree: (flags & treeNode) !== 0, overflow: undefined };
}

/**
 * Finds the last node whose key is not greater; the first of a branch page covers all lesser ones. @throws RangeError
 */
export function findNode(page: Buffer, kind: PageKind, key: Buffer): Node | undefined {
  let low = kind === PageKind.branch ? 1 : 0;
  let high = page.readUInt16LE(20) >> 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (readNode(page, middle, kind).key.compare(key) <= 0) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? undefined : readNode(page, low - 1, kind);
}
