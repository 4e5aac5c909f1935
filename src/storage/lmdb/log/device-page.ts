import { type DeviceKey, deviceKeyLength } from '../../../core/identity.ts';
import type { DevicePage, DeviceSpan, StoredRecord } from '../../../domain/records/record.ts';
import { isDamage } from '../environment/lmdb-error.ts';
import { readSequence, sequenceKey } from '../layout/keys.ts';
import { storedJumpsMs } from '../layout/shard-clock.ts';
import type { Tables } from '../layout/tables.ts';
import { endOfLog } from './ingest-log.ts';
import { countOf, decodeEntry, entriesIn, isDamaged } from './log-batch.ts';
import {
  groupPositions,
  hashOfDevice,
  isWhole,
  offsetsIn,
  segmentKey,
  segmentPositions,
  segmentsPerGroup,
  sliceKey,
  sliceOf,
} from './log-index.ts';

/** What one page reads of log and index at most, some milliseconds; and the payloads that it has. */
const readBytesMax = 8 * 1024 * 1024;
const payloadBytesMax = 1024 * 1024;
/** For what costs time whatever its size. */
const lookUpBytes = 8_192;

/** A stretch of the log that the index covers by one value, or does not cover. */
interface Block {
  from: number;
  to: number;
  /** Where the device may have records, in order; undefined: anywhere. */
  positions: number[] | undefined;
}

/** A batch of the log: a view valid until the next read. */
interface FoundBatch {
  first: number;
  /** Start of the next one. */
  end: number;
  batch: Buffer | undefined;
}

/** Reads the records of one device in a part of the log, by the index where there is one (log-index.ts). */
export function readDevicePage(
  tables: Pick<Tables, 'log' | 'logIndex' | 'times'>,
  device: DeviceKey,
  span: DeviceSpan,
): DevicePage {
  return new DevicePageReader(tables, device, span).read();
}

class DevicePageReader {
  readonly #tables: Pick<Tables, 'log' | 'logIndex' | 'times'>;
  readonly #device: Buffer;
  readonly #hash: number;
  readonly #span: DeviceSpan;
  readonly #records: StoredRecord[] = [];
  #bytesLeft = readBytesMax;
  #payloadBytes = 0;

  constructor(tables: Pick<Tables, 'log' | 'logIndex' | 'times'>, device: DeviceKey, span: DeviceSpan) {
    this.#tables = tables;
    this.#device = Buffer.from(device, 'latin1');
    this.#hash = hashOfDevice(device);
    this.#span = span;
  }

  read(): DevicePage {
    const { isNewestFirst } = this.#span;
    let { from, to } = this.#boundsInLog();
    while (from < to && !this.#isFull()) {
      const block = this.#blockAt(isNewestFirst ? to - 1 : from);
      const reached = this.#readBlock({
        ...block,
        from: Math.max(from, block.from),
        to: Math.min(to, block.to),
      });
      if (isNewestFirst) to = reached;
      else from = reached;
    }
    const jumpsMs = storedJumpsMs(this.#tables.times);
    for (const record of this.#records) record.storedAtMs += jumpsMs;
    const next = isNewestFirst ? to : from;
    // Beyond the log there is nothing to go on to, wherever the span ends.
    const isDone = from >= to;
    return {
      records: this.#records,
      next: isDone ? (isNewestFirst ? this.#span.from : this.#span.to) : next,
    };
  }

  /** The part of the span in which the log has batches. */
  #boundsInLog(): { from: number; to: number } {
    const { log } = this.#tables;
    for (const key of log.getKeys({ limit: 1 })) {
      const { from, to } = this.#span;
      return { from: Math.max(from, readSequence(key, 0)), to: Math.min(to, endOfLog(log)) };
    }
    return { from: 0, to: 0 };
  }

  #isFull(): boolean {
    return (
      this.#bytesLeft <= 0 ||
      this.#records.length >= this.#span.recordsMax ||
      this.#payloadBytes >= payloadBytesMax
    );
  }

  #blockAt(position: number): Block {
    const { logIndex } = this.#tables;
    const group = Math.floor(position / groupPositions);
    const origin = group * groupPositions;
    const isSliced = isWhole(logIndex, group);
    const number = Math.floor((position - origin) / segmentPositions) % segmentsPerGroup;
    const from = isSliced ? origin : origin + number * segmentPositions;
    const to = from + (isSliced ? groupPositions : segmentPositions);
    const key = isSliced ? sliceKey(group, sliceOf(this.#hash)) : segmentKey(group, number);
    const value = logIndex.getBinaryFast(key);
    this.#bytesLeft -= (value?.length ?? 0) + lookUpBytes;
    return { from, to, positions: value && offsetsIn(value, this.#hash).map((offset) => origin + offset) };
  }

  /** Returns how far it has come. */
  #readBlock({ from, to, positions }: Block): number {
    const { isNewestFirst } = this.#span;
    if (positions === undefined) return this.#readWhole(from, to);
    let next = from;
    let end = to;
    for (const position of isNewestFirst ? positions.reverse() : positions) {
      // A batch that was read for one position has been read for all.
      if (position < next || position >= end) continue;
      const found = this.#batchAt(position);
      if (found === undefined) continue;
      const reached = this.#take(found, next, end);
      if (reached !== undefined) return reached;
      if (isNewestFirst) end = Math.max(next, found.first);
      else next = Math.min(end, found.end);
      if (this.#isFull()) return isNewestFirst ? end : next;
    }
    return isNewestFirst ? from : to;
  }

  /** Reads all batches of a stretch that the index lacks. */
  #readWhole(from: number, to: number): number {
    const { isNewestFirst } = this.#span;
    let next = from;
    let end = to;
    while (next < end && !this.#isFull()) {
      const found = isNewestFirst
        ? this.#batchAt(end - 1, true)
        : (this.#batchAt(next) ?? this.#batchFrom(next, end));
      if (found === undefined) return isNewestFirst ? from : to;
      const reached = this.#take(found, next, end);
      if (reached !== undefined) return reached;
      if (isNewestFirst) end = found.first;
      else next = found.end;
    }
    return isNewestFirst ? Math.max(from, end) : Math.min(to, next);
  }

  /** The batch with a position, or, if asked for, the one before it. */
  #batchAt(position: number, orBefore = false): FoundBatch | undefined {
    for (const key of this.#tables.log.getKeys({ start: sequenceKey(position), reverse: true, limit: 1 })) {
      const found = this.#read(key);
      return orBefore || found.end > position ? found : undefined;
    }
    return undefined;
  }

  #batchFrom(position: number, end: number): FoundBatch | undefined {
    const range = { start: sequenceKey(position), end: sequenceKey(end), limit: 1 };
    for (const key of this.#tables.log.getKeys(range)) return this.#read(key);
    return undefined;
  }

  #read(key: Buffer): FoundBatch {
    const first = readSequence(key, 0);
    this.#bytesLeft -= lookUpBytes;
    try {
      const batch = this.#tables.log.getBinaryFast(key);
      if (batch !== undefined && !isDamaged(batch)) {
        this.#bytesLeft -= batch.length;
        return { first, end: first + Math.max(1, countOf(batch)), batch };
      }
    } catch (error) {
      if (!isDamage(error)) throw error;
    }
    return { first, end: first + 1, batch: undefined };
  }

  /** Takes the device's records of a batch; returns the position to go on at if there was no place for all. */
  #take({ first, batch }: FoundBatch, from: number, to: number): number | undefined {
    if (batch === undefined) return undefined;
    const { isNewestFirst } = this.#span;
    const found = this.#recordsIn(batch, first, from, to);
    for (const record of isNewestFirst ? found.reverse() : found) {
      if (this.#isFull()) return isNewestFirst ? record.position + 1 : record.position;
      this.#records.push(record);
      this.#payloadBytes += record.payload.length;
    }
    return undefined;
  }

  #recordsIn(batch: Buffer, first: number, from: number, to: number): StoredRecord[] {
    const records: StoredRecord[] = [];
    try {
      for (const entry of entriesIn(batch)) {
        const position = first + entry.index;
        if (position < from || position >= to || !this.#isOwn(batch, entry.at)) continue;
        const { index: _, timeMs, ...record } = decodeEntry(batch, entry);
        records.push({ position, ...record, storedAtMs: timeMs });
      }
    } catch {
      // As for other readers of the log: a batch that is damaged anywhere has no records.
      return [];
    }
    return records;
  }

  /** From the end on, where the keys of a fleet's devices differ. */
  #isOwn(batch: Buffer, at: number): boolean {
    for (let index = deviceKeyLength - 1; index >= 0; index -= 1) {
      if (batch[at + index] !== this.#device[index]) return false;
    }
    return true;
  }
}
