import { fleetIdLength } from '../../../core/identity.ts';
import {
  fingerprintOf,
  type LogRetention,
  type RetentionSource,
  ttlsOf,
} from '../../../domain/log-retention.ts';
import type { Table } from '../environment/stored-tables.ts';
import { readSequence, sequenceKey } from '../layout/keys.ts';
import { endOfLog } from './ingest-log.ts';
import {
  type BatchEntry,
  batchHeaderBytes,
  countOf,
  cutFormatOf,
  entriesIn,
  isDamaged,
  newestTimeMs,
  runHeaderBytes,
  timeMsOf,
} from './log-batch.ts';
import { hasTrimState, loadTrimState, type TrimState } from './log-trim-state.ts';

/** The result of cutting a batch. */
interface Cut {
  /** Replaces the batch; undefined if nothing remains. */
  rest: Buffer | undefined;
  /** Removed bytes, by fleet. */
  removed: ReadonlyMap<string, number>;
}

/**
 * Cuts the records that `isRemovable` selects out of a batch. The others keep their positions and ids. Undefined if
 * none is selected. @throws RangeError for a damaged batch.
 */
export function cutBatch(
  batch: Buffer,
  isRemovable: (fleetId: string, timeMs: number, bytes: number) => boolean,
): Cut | undefined {
  const remaining: BatchEntry[] = [];
  const removed = new Map<string, number>();
  for (const entry of entriesIn(batch)) {
    const { at, end } = entry;
    const fleetId = batch.toString('latin1', at, at + fleetIdLength);
    if (isRemovable(fleetId, timeMsOf(batch, entry), end - at))
      removed.set(fleetId, (removed.get(fleetId) ?? 0) + end - at);
    else remaining.push(entry);
  }
  if (removed.size === 0) return undefined;
  return { rest: remaining.length === 0 ? undefined : encodeCut(batch, remaining), removed };
}

/** Record bytes by fleet. @throws RangeError for a damaged batch. */
function bytesByFleet(batch: Buffer): Map<string, number> {
  const bytes = new Map<string, number>();
  for (const { at, end } of entriesIn(batch)) {
    const fleetId = batch.toString('latin1', at, at + fleetIdLength);
    bytes.set(fleetId, (bytes.get(fleetId) ?? 0) + end - at);
  }
  return bytes;
}

function encodeCut(batch: Buffer, remaining: readonly BatchEntry[]): Buffer {
  // Adjacent records are copied together.
  const runs: { skipped: number; count: number; from: number; to: number }[] = [];
  let next = -1;
  for (const { index, listingAt, at, end } of remaining) {
    const run = runs.at(-1);
    if (run !== undefined && index === next) {
      run.count += 1;
      run.to = end;
    } else runs.push({ skipped: index - Math.max(next, 0), count: 1, from: listingAt ?? at, to: end });
    next = index + 1;
  }
  const head = Buffer.from(batch.subarray(0, batchHeaderBytes));
  head.writeUInt8(cutFormatOf(batch), 0);
  const parts: Uint8Array[] = [head];
  for (const { skipped, count, from, to } of runs) {
    const header = Buffer.allocUnsafe(runHeaderBytes);
    header.writeUInt32BE(skipped, 0);
    header.writeUInt32BE(count, 4);
    parts.push(header, batch.subarray(from, to));
  }
  return Buffer.concat(parts);
}

/**
 * Bounds of a step, which is read on the thread that answers devices and committed beside their writes: a millisecond
 * or two.
 */
const stepBytesMax = 256 * 1024;
const stepBatchesMax = 500;
const stepsPerStore = 256;
/** A fleet over its limit is cut down to this share of it, so that its batches are not rewritten each time. */
const limitShare = 15 / 16;

/** The work of one transaction; empty if a step only scanned. */
export interface TrimStep {
  /** Batches to put, or to remove if without a value. */
  changes: readonly { key: Buffer; value: Buffer | undefined }[];
  /** The state to store; `none` to remove it. */
  state: TrimState | 'none' | undefined;
}

/** Decides about each batch of a walk. */
type Visit = (batch: Buffer) => Cut | 'keep' | 'stop';

const whole: Cut = { rest: undefined, removed: new Map() };

export interface TrimmerOptions {
  log: Table;
  times: Table;
  source: RetentionSource;
  /** Now, by the clock of the shard. */
  lifeMs(): number;
  /** The log's size on disk. */
  logBytes(): number;
  /** Called if records are removed early, since the log exceeds its size limit. */
  onExcess(bytes: number): void;
}

/**
 * Removes expired and excess records from the log. A batch holds records of many fleets: it is removed when all of
 * them are due, and rewritten without those that are while others are not. Positions and ids stay. The last batch
 * always stays: it tells the next position after a restart.
 */
export class LogTrimmer {
  readonly #options: TrimmerOptions;

  constructor(options: TrimmerOptions) {
    this.#options = options;
  }

  /** Yields the steps of one pass. Commit each before requesting the next; a pass may be abandoned between two. */
  *steps(): Generator<TrimStep> {
    const { log, times, source } = this.#options;
    const retention = source.retention();
    const nowMs = this.#options.lifeMs();
    if (retention.fleets.size === 0) {
      // From here on trimming is not counted: the state would be wrong when a fleet has a limit again.
      if (hasTrimState(times)) yield { changes: [], state: 'none' };
      const cutOffMs = nowMs - retention.ttlSeconds * 1_000;
      yield* this.#walk(0, undefined, (batch) => (isYounger(batch, cutOffMs) ? 'stop' : whole));
      yield* this.#fit(retention.bytesMax, undefined);
      return;
    }
    const state = loadTrimState(times, fingerprintOf(retention), endOfLog(log));
    yield* this.#count(state, retention);
    const ttls = ttlsOf(retention);
    const isExpired = (fleetId: string, timeMs: number): boolean => {
      const ttlSeconds = retention.fleets.get(fleetId)?.ttlSeconds ?? retention.ttlSeconds;
      return timeMs < nowMs - ttlSeconds * 1_000;
    };
    for (const ttl of ttls) {
      const isLongest = ttl === ttls[0];
      state.walkedTo[ttl] = yield* this.#walk(state.walkedTo[ttl] ?? 0, state, (batch) => {
        if (isYounger(batch, nowMs - ttl * 1_000)) return 'stop';
        // A damaged batch is of no known fleet: it is removed when any fleet's would be.
        return cut(batch, isExpired) ?? (isLongest ? whole : 'keep');
      });
    }
    yield* this.#cutFleets(state, retention);
    yield* this.#fit(retention.bytesMax, state);
    yield { changes: [], state };
  }

  /** Counts what was appended since the last pass, so that appending costs nothing extra. */
  *#count(state: TrimState, { fleets }: LogRetention): Generator<TrimStep> {
    if (![...fleets.values()].some(({ bytesMax }) => bytesMax !== undefined)) return;
    for (let steps = 1; ; steps += 1) {
      let bytes = 0;
      for (const { key, value } of this.#options.log.getRange({ start: sequenceKey(state.countedTo) })) {
        const first = readSequence(key, 0);
        for (const [fleetId, more] of counted(value)) {
          if (fleets.get(fleetId)?.bytesMax === undefined) continue;
          state.fleets[fleetId] ??= { bytes: 0, front: first };
          state.fleets[fleetId].bytes += more;
        }
        state.countedTo = first + (isDamaged(value) ? 1 : countOf(value));
        bytes += value.length;
        if (bytes >= stepBytesMax) break;
      }
      if (bytes < stepBytesMax) return;
      // Store now and then, so that the first count of a long log continues after a restart.
      yield { changes: [], state: steps % stepsPerStore === 0 ? state : undefined };
    }
  }

  /** Removes the oldest records of fleets over their limit; each shard removes its share. */
  *#cutFleets(state: TrimState, { fleets }: LogRetention): Generator<TrimStep> {
    const excess = new Map<string, number>();
    let elsewhere: ReadonlyMap<string, number> | undefined;
    let from = Number.POSITIVE_INFINITY;
    for (const [fleetId, { bytesMax }] of fleets) {
      const fleet = state.fleets[fleetId];
      if (fleet === undefined || bytesMax === undefined) continue;
      elsewhere ??= this.#options.source.bytesElsewhere();
      const total = fleet.bytes + (elsewhere.get(fleetId) ?? 0);
      if (total <= bytesMax) continue;
      excess.set(fleetId, fleet.bytes - Math.floor((bytesMax * limitShare * fleet.bytes) / total));
      from = Math.min(from, fleet.front);
    }
    if (excess.size === 0) return;
    const fleetIds = [...excess.keys()];
    const isTooMuch = (fleetId: string, _timeMs: number, bytes: number): boolean => {
      const left = excess.get(fleetId);
      if (left === undefined) return false;
      if (left <= bytes) excess.delete(fleetId);
      else excess.set(fleetId, left - bytes);
      return true;
    };
    const end = yield* this.#walk(from, state, (batch) =>
      excess.size === 0 ? 'stop' : (cut(batch, isTooMuch) ?? 'keep'),
    );
    for (const fleetId of fleetIds) {
      const fleet = state.fleets[fleetId];
      // The last batch may have been cut only in part.
      if (fleet !== undefined) fleet.front = Math.max(fleet.front, Math.min(end - 1, state.countedTo));
    }
  }

  /** Removes whole batches from the front until the log fits its limit. */
  *#fit(bytesMax: number, state: TrimState | undefined): Generator<TrimStep> {
    let excess = bytesMax === 0 ? 0 : this.#options.logBytes() - bytesMax;
    if (excess <= 0) return;
    this.#options.onExcess(excess);
    yield* this.#walk(0, state, (batch) => {
      if (excess <= 0) return 'stop';
      excess -= batch.length;
      return state === undefined ? whole : (cut(batch, () => true) ?? whole);
    });
  }

  /** Visits the batches from position `from` on, and yields the changes step by step; returns where it stopped. */
  *#walk(from: number, state: TrimState | undefined, visit: Visit): Generator<TrimStep, number> {
    const { log } = this.#options;
    let position = from;
    for (;;) {
      const [last] = [...log.getKeys({ reverse: true, limit: 1 })];
      const changes: { key: Buffer; value: Buffer | undefined }[] = [];
      let isDone = true;
      let bytes = 0;
      let batches = 0;
      for (const { key, value } of log.getRange({ start: sequenceKey(position) })) {
        if (last?.equals(key)) break;
        const change = visit(value);
        if (change === 'stop') break;
        const first = readSequence(key, 0);
        if (change !== 'keep') {
          changes.push({ key, value: change.rest });
          if (state !== undefined && first < state.countedTo) discount(state, change.removed);
        }
        position = first + 1;
        bytes += value.length;
        batches += 1;
        isDone = bytes < stepBytesMax && batches < stepBatchesMax;
        if (!isDone) break;
      }
      yield { changes, state: changes.length > 0 ? state : undefined };
      if (isDone) return position;
    }
  }
}

function isYounger(batch: Buffer, timeMs: number): boolean {
  return !isDamaged(batch) && newestTimeMs(batch) >= timeMs;
}

function discount(state: TrimState, removed: ReadonlyMap<string, number>): void {
  for (const [fleetId, bytes] of removed) {
    const fleet = state.fleets[fleetId];
    if (fleet !== undefined) fleet.bytes = Math.max(0, fleet.bytes - bytes);
  }
}

/** Undefined for a damaged batch; `keep` if nothing is cut out. */
function cut(batch: Buffer, isRemovable: Parameters<typeof cutBatch>[1]): Cut | 'keep' | undefined {
  try {
    return cutBatch(batch, isRemovable) ?? 'keep';
  } catch {
    return undefined;
  }
}

function counted(batch: Buffer): ReadonlyMap<string, number> {
  try {
    return bytesByFleet(batch);
  } catch {
    return new Map();
  }
}
