import { fleetIdLength } from '../../../core/identity.ts';
import {
  fingerprintOf,
  type LogRetention,
  livesOf,
  type RetentionSource,
} from '../../../domain/log-retention.ts';
import type { Table } from '../environment/stored-tables.ts';
import { readSequence, sequenceKey } from '../layout/keys.ts';
import { endOfLog } from './ingest-log.ts';
import {
  type BatchPlace,
  batchHeaderBytes,
  countOf,
  cutFormatOf,
  isDamaged,
  newestTimeMs,
  placesIn,
  runHeaderBytes,
  timeMsOf,
} from './log-batch.ts';
import { hasTrimState, loadTrimState, type TrimState } from './log-trim-state.ts';

/** What is left of a batch, and of whom what was taken. */
interface Cut {
  /** To stand in the batch's place; undefined where nothing is left. */
  rest: Buffer | undefined;
  /** Bytes of records that went, by fleet. */
  gone: ReadonlyMap<string, number>;
}

/**
 * Cuts out of a batch the records that are over. Those that stay keep their positions and ids. Undefined where
 * none is over. @throws RangeError where the batch is damaged.
 */
export function cutBatch(
  batch: Buffer,
  isOver: (fleetId: string, timeMs: number, bytes: number) => boolean,
): Cut | undefined {
  const kept: BatchPlace[] = [];
  const gone = new Map<string, number>();
  for (const place of placesIn(batch)) {
    const { at, end } = place;
    const fleetId = batch.toString('latin1', at, at + fleetIdLength);
    if (isOver(fleetId, timeMsOf(batch, place), end - at))
      gone.set(fleetId, (gone.get(fleetId) ?? 0) + end - at);
    else kept.push(place);
  }
  if (gone.size === 0) return undefined;
  return { rest: kept.length === 0 ? undefined : encodeCut(batch, kept), gone };
}

/** Bytes of records by fleet. @throws RangeError where the batch is damaged. */
function bytesByFleet(batch: Buffer): Map<string, number> {
  const bytes = new Map<string, number>();
  for (const { at, end } of placesIn(batch)) {
    const fleetId = batch.toString('latin1', at, at + fleetIdLength);
    bytes.set(fleetId, (bytes.get(fleetId) ?? 0) + end - at);
  }
  return bytes;
}

function encodeCut(batch: Buffer, kept: readonly BatchPlace[]): Buffer {
  // Records that stand beside each other are copied together.
  const runs: { skipped: number; count: number; from: number; to: number }[] = [];
  let next = -1;
  for (const { index, listingAt, at, end } of kept) {
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

/** One step is read on the thread that answers devices, and written beside their writes: a ms or two of it. */
const stepBytesMax = 256 * 1024;
const stepBatchesMax = 500;
const stepsPerStore = 256;
/** What a fleet has too much goes down to this share of its limit, so that its batches are not rewritten each time. */
const limitShare = 15 / 16;

/** What one transaction is to do; nothing where a step has only looked. */
export interface TrimStep {
  /** A batch as it is to be, or its key alone where it is to go. */
  changes: readonly { key: Buffer; value: Buffer | undefined }[];
  /** As it is then to be stored; `none` where it is to be forgotten. */
  state: TrimState | 'none' | undefined;
}

/** The limits of a walk, by batch. */
type Visit = (batch: Buffer) => Cut | 'keep' | 'stop';

const wholly: Cut = { rest: undefined, gone: new Map() };

export interface TrimmerOptions {
  log: Table;
  times: Table;
  source: RetentionSource;
  /** Now, by the clock that batches are dated by. */
  lifeMs(): number;
  /** What the log takes on disk. */
  logBytes(): number;
  /** Records go before their time, for there is so much more of them than there may be. */
  onExcess(bytes: number): void;
}

/**
 * Removes from the log what has been there for too long or is too much. A batch holds records of many fleets:
 * it goes when all of them are over, and is written anew without those that are while others are not. Positions
 * and ids stay. The last batch stays whatever its age: it tells the next position after a restart.
 */
export class LogTrimmer {
  readonly #options: TrimmerOptions;

  constructor(options: TrimmerOptions) {
    this.#options = options;
  }

  /** One pass. Each step is to be committed before the next one is asked for; a pass may be given up between two. */
  *steps(): Generator<TrimStep> {
    const { log, times, source } = this.#options;
    const retention = source.retention();
    const nowMs = this.#options.lifeMs();
    if (retention.fleets.size === 0) {
      // What is trimmed from here on is not counted: it must not be gone on from when a fleet has a limit again.
      if (hasTrimState(times)) yield { changes: [], state: 'none' };
      const cutOffMs = nowMs - retention.ttlSeconds * 1_000;
      yield* this.#walk(0, undefined, (batch) => (isYounger(batch, cutOffMs) ? 'stop' : wholly));
      yield* this.#fit(retention.bytesMax, undefined);
      return;
    }
    const state = loadTrimState(times, fingerprintOf(retention), endOfLog(log));
    yield* this.#count(state, retention);
    const lives = livesOf(retention);
    const isOver = (fleetId: string, timeMs: number): boolean => {
      const ttlSeconds = retention.fleets.get(fleetId)?.ttlSeconds ?? retention.ttlSeconds;
      return timeMs < nowMs - ttlSeconds * 1_000;
    };
    for (const life of lives) {
      const isLongest = life === lives[0];
      state.walkedTo[life] = yield* this.#walk(state.walkedTo[life] ?? 0, state, (batch) => {
        if (isYounger(batch, nowMs - life * 1_000)) return 'stop';
        // A damaged one is of no known fleet: it goes when any fleet's would.
        return cut(batch, isOver) ?? (isLongest ? wholly : 'keep');
      });
    }
    yield* this.#cutFleets(state, retention);
    yield* this.#fit(retention.bytesMax, state);
    yield { changes: [], state };
  }

  /** Counts what was appended since the last pass, which costs those who append nothing. */
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
      // The first count of a long log goes on after a restart.
      yield { changes: [], state: steps % stepsPerStore === 0 ? state : undefined };
    }
  }

  /** Fleets that have more than they may lose their oldest records, each shard its share of them. */
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
      // What was cut of the last batch looked at may not be all of it.
      if (fleet !== undefined) fleet.front = Math.max(fleet.front, Math.min(end - 1, state.countedTo));
    }
  }

  /** Whole batches go from the front until the log is no larger than it may be. */
  *#fit(bytesMax: number, state: TrimState | undefined): Generator<TrimStep> {
    let excess = bytesMax === 0 ? 0 : this.#options.logBytes() - bytesMax;
    if (excess <= 0) return;
    this.#options.onExcess(excess);
    yield* this.#walk(0, state, (batch) => {
      if (excess <= 0) return 'stop';
      excess -= batch.length;
      return state === undefined ? wholly : (cut(batch, () => true) ?? wholly);
    });
  }

  /**
   * Visits the batches that begin at `from` or behind it, and yields step by step what becomes of them; answers
   * where it came to.
   */
  *#walk(from: number, state: TrimState | undefined, visit: Visit): Generator<TrimStep, number> {
    const { log } = this.#options;
    let position = from;
    for (;;) {
      const [last] = [...log.getKeys({ reverse: true, limit: 1 })];
      const changes: { key: Buffer; value: Buffer | undefined }[] = [];
      let isOver = true;
      let bytes = 0;
      let batches = 0;
      for (const { key, value } of log.getRange({ start: sequenceKey(position) })) {
        if (last?.equals(key)) break;
        const change = visit(value);
        if (change === 'stop') break;
        const first = readSequence(key, 0);
        if (change !== 'keep') {
          changes.push({ key, value: change.rest });
          if (state !== undefined && first < state.countedTo) discount(state, change.gone);
        }
        position = first + 1;
        bytes += value.length;
        batches += 1;
        isOver = bytes < stepBytesMax && batches < stepBatchesMax;
        if (!isOver) break;
      }
      yield { changes, state: changes.length > 0 ? state : undefined };
      if (isOver) return position;
    }
  }
}

function isYounger(batch: Buffer, timeMs: number): boolean {
  return !isDamaged(batch) && newestTimeMs(batch) >= timeMs;
}

function discount(state: TrimState, gone: ReadonlyMap<string, number>): void {
  for (const [fleetId, bytes] of gone) {
    const fleet = state.fleets[fleetId];
    if (fleet !== undefined) fleet.bytes = Math.max(0, fleet.bytes - bytes);
  }
}

/** Undefined for a batch that is damaged; `keep` where nothing of it is over. */
function cut(batch: Buffer, isOver: Parameters<typeof cutBatch>[1]): Cut | 'keep' | undefined {
  try {
    return cutBatch(batch, isOver) ?? 'keep';
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
