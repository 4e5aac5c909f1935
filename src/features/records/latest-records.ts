import type { DeviceKey } from '../../core/identity.ts';
import type { StoredRecord } from '../../domain/records/record.ts';
import type { LogFollower } from './log-follower.ts';

/** Bytes of records read for one request, whether they match or not: some tens of milliseconds. */
const bytesReadMax = 8 * 1024 * 1024;
/** Estimated cost of a record besides its payload, and of a page of one device. */
const recordBytes = 64;
const devicePageBytes = 8 * 1024;

/** The end of one log, read backwards: all of it, or what one device has in it. */
interface Tail {
  shard: number;
  device: DeviceKey | undefined;
  /** Everything from here on has been read. */
  position: number;
  /** Matching records that are not emitted yet, oldest first. */
  records: StoredRecord[];
  isEnded: boolean;
}

export interface LatestOptions {
  /** Whose turns at the logs it takes. */
  fleetId: string;
  /** Number of shards to read, from the first on. */
  shards: number;
  limit: number;
  /** Absent or empty: all. */
  devices?: readonly DeviceKey[] | undefined;
  /** Only the newest of each schema. */
  isPerSchema: boolean;
  matches(record: StoredRecord): boolean;
}

/** The newest records, newest first. `isPartial`: older ones may match, further back than is read. */
export interface LatestRecords {
  records: StoredRecord[];
  isPartial: boolean;
}

/** Reads the logs backwards from their ends, merged by time, until there are enough records or enough was read. */
export async function readLatest(follower: LogFollower, options: LatestOptions): Promise<LatestRecords> {
  const ends = await follower.ends();
  const devices = options.devices?.length ? [...new Set(options.devices)] : [undefined];
  const tails = ends
    .slice(0, options.shards)
    .flatMap((position, shard) =>
      devices.map((device): Tail => ({ shard, device, position, records: [], isEnded: false })),
    );
  const found: StoredRecord[] = [];
  const seen = new Set<string>();
  let bytesLeft = bytesReadMax;
  while (found.length < options.limit) {
    for (const tail of tails) {
      while (tail.records.length === 0 && !tail.isEnded) {
        if (bytesLeft <= 0) return { records: found, isPartial: true };
        bytesLeft -= await readPage(follower, tail, options);
      }
    }
    const record = newest(tails)?.records.pop();
    if (record === undefined) return { records: found, isPartial: false };
    const schema = `${record.kind} ${record.schema}`;
    if (options.isPerSchema && seen.has(schema)) continue;
    seen.add(schema);
    found.push(record);
  }
  // There may be more, but no more was asked for.
  return { records: found, isPartial: false };
}

/** Returns the bytes read. */
async function readPage(follower: LogFollower, tail: Tail, options: LatestOptions): Promise<number> {
  const { records, next, bytes } = await pageOf(follower, tail, options);
  tail.isEnded = next === tail.position;
  tail.position = next;
  tail.records = records.filter(options.matches);
  return records.reduce((sum, { payload }) => sum + payload.length + recordBytes, bytes);
}

async function pageOf(
  follower: LogFollower,
  { shard, device, position }: Tail,
  { fleetId, limit }: LatestOptions,
): Promise<{ records: StoredRecord[]; next: number; bytes: number }> {
  if (device === undefined)
    return { ...(await follower.pageBefore(fleetId, shard, position)), bytes: recordBytes };
  const span = { from: 0, to: position, isNewestFirst: true, recordsMax: limit };
  const { records, next } = await follower.ofDevice(shard, device, span);
  return { records: records.reverse(), next, bytes: devicePageBytes };
}

function newest(tails: readonly Tail[]): Tail | undefined {
  let found: Tail | undefined;
  for (const tail of tails) {
    const atMs = tail.records.at(-1)?.storedAtMs;
    if (atMs !== undefined && atMs > (found?.records.at(-1)?.storedAtMs ?? Number.NEGATIVE_INFINITY)) {
      found = tail;
    }
  }
  return found;
}
