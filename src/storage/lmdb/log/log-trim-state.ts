import { pack, unpack } from '../environment/codec.ts';
import type { Table } from '../environment/stored-tables.ts';

/**
 * How far a shard's log has been trimmed: stored with what is trimmed, in one transaction, so that a restart goes
 * on from there. Only where a fleet has a retention of its own.
 */
export interface TrimState {
  /** What it was trimmed by. By other rules, everything is looked at again. */
  rules: string;
  /** By life in seconds: what is in front of that position and could be over, is gone. */
  walkedTo: Record<string, number>;
  /** Up to which position the bytes of limited fleets are counted. */
  countedTo: number;
  /** By limited fleet: bytes of its records, and a position in front of which it has none. */
  fleets: Record<string, { bytes: number; front: number }>;
}

const trimKey = Buffer.from('trim');

/** As it was stored, if it was by these rules and for this log. */
export function loadTrimState(times: Table, rules: string, logEnd: number): TrimState {
  const bytes = times.getBinary(trimKey);
  const state = bytes === undefined ? undefined : (unpack(bytes) as TrimState);
  // A log that ends earlier was cut back by a move that fell back.
  if (state?.rules === rules && state.countedTo <= logEnd) return state;
  return { rules, walkedTo: {}, countedTo: 0, fleets: {} };
}

export function hasTrimState(times: Table): boolean {
  return times.doesExist(trimKey);
}

/** Inside a write transaction. */
export function storeTrimState(times: Table, state: TrimState | 'none'): void {
  if (state === 'none') times.removeSync(trimKey);
  else times.putSync(trimKey, pack(state));
}

/** Bytes of the records of each limited fleet, as last counted. */
export function storedLogBytes(times: Table): ReadonlyMap<string, number> {
  const bytes = times.getBinary(trimKey);
  if (bytes === undefined) return new Map();
  const { fleets } = unpack(bytes) as TrimState;
  return new Map(Object.entries(fleets).map(([fleetId, fleet]) => [fleetId, fleet.bytes]));
}

/** Whether a record of the table is such a state. */
export function isTrimRecord(key: Buffer, value: Buffer): boolean {
  if (!key.equals(trimKey)) return false;
  const { rules, walkedTo, countedTo, fleets } = unpack(value) as TrimState;
  const numbers = [countedTo, ...Object.values(walkedTo)];
  for (const { bytes, front } of Object.values(fleets)) numbers.push(bytes, front);
  return typeof rules === 'string' && numbers.every((number) => Number.isSafeInteger(number) && number >= 0);
}
