import type { TopDocument } from '../../../contract/server.ts';

/** Activity of a server between two answers of `/top`. */
export interface Beat {
  timeSeconds: number;
  /** Null where nobody looked. */
  requestsPerSecond: number | null;
  /** Null while nothing was asked too. */
  latencyMs: number | null;
  commitsPerSecond: number | null;
}

/** Between two looks of a page that is open; after longer its charts have a gap, for a mean over it says nothing. */
const lookSecondsMax = 45;

/** Five minutes, also of two seconds each. */
const beatsMax = 150;

function requestsOf({ requests }: TopDocument): number {
  return requests.reduce((sum, { answered }) => sum + answered, 0);
}

function commitsOf({ shards }: TopDocument): number {
  return shards.reduce((sum, { commits }) => sum + commits, 0);
}

/** Upper bound of the bucket in which the 99th of a hundred requests since the last look is. */
function latencyOf(before: TopDocument, now: TopDocument): number | null {
  const { bounds_seconds } = now.latency;
  const counts = now.latency.counts.map((count, index) => count - (before.latency.counts[index] ?? 0));
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total <= 0) return null;
  let passed = 0;
  const index = counts.findIndex((count) => {
    passed += count;
    return passed >= total * 0.99;
  });
  return (bounds_seconds[index] ?? bounds_seconds.at(-1) ?? 0) * 1_000;
}

/** The pulse with one more look. A server that was started again begins anew. */
export function beatsAfter(
  beats: readonly Beat[],
  before: TopDocument | undefined,
  now: TopDocument,
): Beat[] {
  const timeSeconds = Date.parse(now.time) / 1_000;
  const passedSeconds = before ? timeSeconds - Date.parse(before.time) / 1_000 : 0;
  if (before === undefined || passedSeconds <= 0) return [...beats];
  const requests = requestsOf(now) - requestsOf(before);
  if (requests < 0) return [];
  if (passedSeconds > lookSecondsMax) {
    const gap = { timeSeconds, requestsPerSecond: null, latencyMs: null, commitsPerSecond: null };
    return [...beats, gap].slice(-beatsMax);
  }
  const beat: Beat = {
    timeSeconds,
    requestsPerSecond: requests / passedSeconds,
    latencyMs: latencyOf(before, now),
    commitsPerSecond: Math.max(commitsOf(now) - commitsOf(before), 0) / passedSeconds,
  };
  return [...beats, beat].slice(-beatsMax);
}
