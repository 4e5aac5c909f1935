import { type DeviceKey, deviceKeyLength } from '../../../core/identity.ts';
import type { Table } from '../environment/stored-tables.ts';
import { readSequence, sequenceBytes } from '../layout/keys.ts';

/**
 * The index of the log by device: for each position of the log, a hash of its record's device. It is derived from the
 * log, some time behind it (log-indexer.ts), and may lack any part: where it does, the log itself is read.
 *
 * A group is 2^20 positions. While it fills up, each 2^14 of them are one value, a segment. A whole group is 256
 * slices by hash instead, so that a reader looks at one value for a million positions. The slices count once the last
 * is there. Both hold numbers in their order, hash × 2^20 + offset in the group, as little-endian doubles: what
 * typed arrays sort fastest. Records of other devices with the same hash, and positions that retention emptied, are
 * sorted out by whoever reads the records.
 *
 * Key: group 6, whether it is a slice 1, number of segment or slice 1.
 */
export const segmentPositions = 2 ** 14;
export const groupPositions = 2 ** 20;
export const segmentsPerGroup = groupPositions / segmentPositions;
export const slicesPerGroup = 256;
const hashes = 2 ** 32;
const hashesPerSlice = hashes / slicesPerGroup;
const entryBytes = Float64Array.BYTES_PER_ELEMENT;
const keyBytes = sequenceBytes + 2;

function keyOf(group: number, isSlice: boolean, number: number): Buffer {
  const key = Buffer.allocUnsafe(keyBytes);
  key.writeUIntBE(group, 0, sequenceBytes);
  key.writeUInt8(isSlice ? 1 : 0, sequenceBytes);
  key.writeUInt8(number, sequenceBytes + 1);
  return key;
}

/** `number`: of the segment in its group. */
export function segmentKey(group: number, number: number): Buffer {
  return keyOf(group, false, number);
}

export function sliceKey(group: number, slice: number): Buffer {
  return keyOf(group, true, slice);
}

/** Before all keys of a group. */
export function groupKey(group: number): Buffer {
  return segmentKey(group, 0);
}

export function groupOfKey(key: Buffer): number {
  return readSequence(key, 0);
}

/** True if a group is indexed by slices alone. */
export function isWhole(index: Table, group: number): boolean {
  return index.doesExist(sliceKey(group, slicesPerGroup - 1));
}

/** FNV-1a with an avalanche behind it, since slices go by the upper bits. */
export function deviceHashAt(bytes: Uint8Array, at: number): number {
  let hash = 0x811c9dc5;
  for (let index = at; index < at + deviceKeyLength; index += 1) {
    hash = Math.imul(hash ^ (bytes[index] as number), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

export function hashOfDevice(device: DeviceKey): number {
  return deviceHashAt(Buffer.from(device, 'latin1'), 0);
}

/** Entries of a segment while it is made. */
export class SegmentEntries {
  readonly #entries = new Float64Array(segmentPositions);
  #count = 0;

  add(hash: number, offset: number): void {
    this.#entries[this.#count] = hash * groupPositions + offset;
    this.#count += 1;
  }

  /** The value to store. */
  sorted(): Buffer {
    return Buffer.from(this.#entries.slice(0, this.#count).sort().buffer);
  }
}

/** The entries of a slice, out of all segments of its group. */
export function mergedSlice(segments: readonly Buffer[], slice: number): Buffer {
  const parts = segments.map((segment) =>
    segment.subarray(
      firstAt(segment, slice * hashesPerSlice) * entryBytes,
      firstAt(segment, (slice + 1) * hashesPerSlice) * entryBytes,
    ),
  );
  const entries = new Float64Array(parts.reduce((sum, { length }) => sum + length, 0) / entryBytes);
  const bytes = Buffer.from(entries.buffer);
  let at = 0;
  for (const part of parts) at += part.copy(bytes, at);
  entries.sort();
  return bytes;
}

function entryOf(value: Buffer, index: number): number {
  return value.readDoubleLE(index * entryBytes);
}

/** Number of the first entry with this hash, from this offset on, or a higher one. */
function firstAt(value: Buffer, hash: number, offset = 0): number {
  const wanted = hash * groupPositions + offset;
  let low = 0;
  let high = value.length / entryBytes;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (entryOf(value, middle) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The offsets of a hash in a segment or slice, in order. */
export function offsetsIn(value: Buffer, hash: number): number[] {
  const offsets: number[] = [];
  const count = value.length / entryBytes;
  for (let index = firstAt(value, hash); index < count; index += 1) {
    const entry = entryOf(value, index);
    const offset = entry - hash * groupPositions;
    if (offset >= groupPositions) break;
    offsets.push(offset);
  }
  return offsets;
}

/** True if a segment or slice has this entry. */
export function hasEntry(value: Buffer, hash: number, offset: number): boolean {
  const index = firstAt(value, hash, offset);
  return index < value.length / entryBytes && entryOf(value, index) === hash * groupPositions + offset;
}

/** The slice that a hash is in. */
export function sliceOf(hash: number): number {
  return Math.floor(hash / hashesPerSlice);
}

/** Returns what is wrong with a record of the table, if anything. */
export function indexFault(key: Buffer, value: Buffer): string | undefined {
  if (key.length !== keyBytes || value.length % entryBytes !== 0) return 'the record does not decode';
  const isSlice = key[sequenceBytes] === 1;
  const number = key[sequenceBytes + 1] as number;
  if (!isSlice && (key[sequenceBytes] !== 0 || number >= segmentsPerGroup))
    return 'this is not a key of the index';
  const from = isSlice ? number * hashesPerSlice * groupPositions : 0;
  const to = isSlice ? (number + 1) * hashesPerSlice * groupPositions : hashes * groupPositions;
  let before = from - 1;
  for (let index = 0; index < value.length / entryBytes; index += 1) {
    const entry = entryOf(value, index);
    if (!Number.isInteger(entry) || entry <= before || entry >= to) return 'its entries are not in order';
    before = entry;
  }
  return undefined;
}
