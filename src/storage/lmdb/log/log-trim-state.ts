import { pack, unpack } from '../../tables/codec.ts';
import type { Table } from '../environment/stored-tables.ts';

/**
 * Progress of trimming a shard's log, stored in the same transaction as what is trimmed, so that a restart continues
 * there. Only used if a fleet has its own retention.
 */
export interface TrimState {
  /** Fingerprint of the retention. If it differs, everything is scanned again. */
  rules: string;
  /** Positions by TTL in seconds: before this position whatever could have expired is removed. */
  walkedTo: Record<string, number>;
  /** Limited fleets' bytes are counted up to this position. */
  countedTo: number;
  /** Bytes of the records of each limited fleet, and a position before which it has none. */
  fleets: Record<string, { bytes: number; front: number }>;
}

const trimKey = Buffer.from('trim');

/** The stored state, if it is for these rules and this log. */
export function loadTrimState(times: Table, rules: string, logEnd: number): TrimState {
  const bytes = times.getBinary(trimKey);
  const state = bytes === undefined ? undefined : (unpack(bytes) as TrimState);
  // A log that ends earlier was truncated when a reshard was undone.
  if (state?.rules === rules && state.countedTo <= logEnd) return state;
  return { rules, walkedTo: {}, countedTo: 0, fleets: {} };
}

export function hasTrimState(times: Table): boolean {
  return times.doesExist(trimKey);
}

/** Call it inside a write transaction. */
export function storeTrimState(times: Table, state: TrimState | 'none'): void {
  if (state === 'none') times.removeSync(trimKey);
  else times.putSync(trimKey, pack(state));
}

/** Bytes of each limited fleet's records, as last counted. */
export function storedLogBytes(times: Table): ReadonlyMap<string, number> {
  const bytes = times.getBinary(trimKey);
  if (bytes === undefined) return new Map();
  const { fleets } = unpack(bytes) as TrimState;
  return new Map(Object.entries(fleets).map(([fleetId, fleet]) => [fleetId, fleet.bytes]));
}

/** True if a record of the table is a valid trim state. */
export function isTrimRecord(key: Buffer, value: Buffer): boolean {
  if (!key.equals(trimKey)) return false;
  const { rules, walkedTo, countedTo, fleets } = unpack(value) as TrimState;
  const numbers = [countedTo, ...Object.values(walkedTo)];
  for (const { bytes, front } of Object.values(fleets)) numbers.push(bytes, front);
  return typeof rules === 'string' && numbers.every((number) => Number.isSafeInteger(number) && number >= 0);
}
