import type { StoredRecord } from '../../domain/records/record.ts';
import type { LogFollower } from './log-follower.ts';

/** Bytes of records read for one request, whether they match or not: some tens of milliseconds. */
const bytesReadMax = 8 * 1024 * 1024;
/** Estimated cost of a record besides its payload. */
const recordBytes = 64;

/** The end of one log, read backwards. */
interface Tail {
  shard: number;
  /** Everything from here on has been read. */
  position: number;
  /** Matching records that are not emitted yet, oldest first. */
  records: StoredRecord[];
  isEnded: boolean;
}

export interface LatestOptions {
  /** Number of shards to read, from the first on. */
  shards: number;
  limit: number;
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
  const tails = ends
    .slice(0, options.shards)
    .map((position, shard): Tail => ({ shard, position, records: [], isEnded: false }));
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
async function readPage(follower: LogFollower, tail: Tail, { matches }: LatestOptions): Promise<number> {
  const { records, next } = await follower.pageBefore(tail.shard, tail.position);
  tail.isEnded = next === tail.position;
  tail.position = next;
  tail.records = records.filter(matches);
  return records.reduce((sum, { payload }) => sum + payload.length + recordBytes, recordBytes);
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
