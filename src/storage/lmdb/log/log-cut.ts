import { fleetIdLength } from '../../../core/identity.ts';
import {
  type BatchPlace,
  batchHeaderBytes,
  cutFormatOf,
  placesIn,
  runHeaderBytes,
  timeMsOf,
} from './log-batch.ts';

/** What is left of a batch, and of whom what was taken. */
export interface Cut {
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
export function bytesByFleet(batch: Buffer): Map<string, number> {
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
