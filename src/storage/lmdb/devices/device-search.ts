import { type DeviceKey, deviceKeyOf } from '../../../core/identity.ts';
import type { DeviceStatus } from '../../../domain/devices/device.ts';
import { matches } from '../../../domain/devices/device-filter.ts';
import {
  type CountStep,
  type DeviceFilter,
  type DeviceIndex,
  type DeviceQuery,
  type FoundDevices,
  nameInKey,
} from '../../../domain/devices/device-query.ts';
import { bucketInKey, bucketOf } from '../../../domain/devices/seen-bucket.ts';
import type { Table } from '../environment/stored-tables.ts';
import { keyOfDevice, readSequence, sequenceKey } from '../layout/keys.ts';
import { storedJumpsMs } from '../layout/shard-clock.ts';
import type { Tables } from '../layout/tables.ts';
import { digestOfTag, disabledDigest } from './tag-index.ts';

/** Sorts after every byte that follows the requested fields in a key: ids are ASCII, names UTF-8. */
const last = '\xff';
const deviceIdLength = 10;

/** The range of an index that a query covers. */
interface Range {
  table: Table;
  /** Key prefix of every position. */
  front: string;
  /** First position, and the exclusive end. */
  from: string;
  to: string;
}

function rangeOf(tables: Tables, by: DeviceIndex, filter: DeviceFilter): Range {
  const {
    fleetId,
    tags: [tag = ''] = [],
    idPrefix = '',
    namePrefix = '',
    seenAfterMs,
    seenBeforeMs,
    waitingBeforeMs,
  } = filter;
  const ids = { from: idPrefix, to: idPrefix + last };
  switch (by) {
    case 'tag':
      return { table: tables.tags, front: digestOfTag(tag) + fleetId, ...ids };
    case 'disabled':
      return { table: tables.tags, front: disabledDigest + fleetId, ...ids };
    case 'name': {
      const name = nameInKey(namePrefix);
      return { table: tables.names, front: fleetId, from: name, to: name + last };
    }
    case 'seen': {
      const [first, end] = [bucketOf(seenAfterMs), bucketOf(seenBeforeMs ?? Number.MAX_SAFE_INTEGER)];
      return { table: tables.seen, front: fleetId, from: bucketInKey(first), to: bucketInKey(end + 1) };
    }
    case 'waiting': {
      const lifeMs = Math.max(0, (waitingBeforeMs ?? 0) - storedJumpsMs(tables.times));
      return { table: tables.waiting, front: fleetId, from: '', to: sequenceKey(lifeMs).toString('latin1') };
    }
    default:
      return { table: tables.devices, front: fleetId, ...ids };
  }
}

/** The keys after a position. The position may come from a client: keys outside the range are never returned. */
function keysOf({ table, front, from, to }: Range, after: string, limit: number): Iterable<Buffer> {
  const start = after === '' || after < from ? from : `${after}\0`;
  if (start >= to) return [];
  const [first, end] = [start, to].map((text) => Buffer.from(front + text, 'latin1'));
  return table.getKeys({ start: first, end, limit } as { start: Buffer; end: Buffer; limit: number });
}

/** The keys before a position, the last one first. The end of a range is no key itself. */
function* keysBefore({ table, front, from, to }: Range, after: string, limit: number): Generator<Buffer> {
  const start = after === '' || after > to ? to : after;
  const [first, end] = [start, from].map((text) => Buffer.from(front + text, 'latin1')) as [Buffer, Buffer];
  if (start <= from) return;
  let left = limit;
  for (const key of table.getKeys({ start: first, end, reverse: true, limit: limit + 1 })) {
    if (left === 0) return;
    if (key.equals(first)) continue;
    left -= 1;
    yield key;
  }
}

/** Counts the index entries that a search would scan, up to `max`. */
export function countEntries(tables: Tables, by: DeviceIndex, filter: DeviceFilter, max: number): number {
  let count = 0;
  for (const _ of keysOf(rangeOf(tables, by, filter), '', max)) count += 1;
  return count;
}

/** One step of a search. `read` returns undefined for missing or damaged devices, which are skipped. */
export function searchDevices(
  tables: Tables,
  query: DeviceQuery,
  read: (device: DeviceKey) => DeviceStatus | undefined,
): FoundDevices {
  const range = rangeOf(tables, query.by, query);
  const found: FoundDevices = { items: [], reached: undefined };
  let scanned = 0;
  const keys = query.isReversed ? keysBefore : keysOf;
  for (const key of keys(range, query.after, query.scanMax)) {
    scanned += 1;
    const position = key.toString('latin1', range.front.length, key.length);
    if (scanned === query.scanMax) found.reached = position;
    const status = read(deviceKeyOf(query.fleetId, position.slice(-deviceIdLength)));
    if (status !== undefined && matches(status, query)) found.items.push({ ...status, position });
  }
  return found;
}

/** Counts devices that match among the next index entries. */
export function countStep(
  tables: Tables,
  by: 'seen' | 'waiting',
  filter: DeviceFilter,
  after: string,
  scanMax: number,
): CountStep {
  const range = rangeOf(tables, by, filter);
  // Beyond the first bucket the index alone proves that they were seen late enough; of waiting ones it always does.
  const exactUpTo = by === 'waiting' ? '' : bucketInKey(bucketOf(filter.seenAfterMs) + 1);
  let count = 0;
  let scanned = 0;
  let reached: string | undefined;
  for (const key of keysOf(range, after, scanMax)) {
    scanned += 1;
    const position = key.toString('latin1', range.front.length, key.length);
    if (scanned === scanMax) reached = position;
    if (position >= exactUpTo || isSeenAfter(tables, filter, position)) count += 1;
  }
  return { count, reached };
}

function isSeenAfter(tables: Tables, { fleetId, seenAfterMs = 0 }: DeviceFilter, position: string): boolean {
  const device = deviceKeyOf(fleetId, position.slice(-deviceIdLength));
  const bytes = tables.activity.getBinaryFast(keyOfDevice(device));
  return bytes !== undefined && readSequence(bytes, 0) >= seenAfterMs;
}
