/** What `GET /top` answers. */
export interface TopSample {
  time: string;
  reasons: string[];
  connections: number;
  streams: number;
  requests: { route: string; answered: number; failed: number }[];
  latency: { bounds_seconds: number[]; counts: number[] };
  shards: {
    shard: number;
    queue: number;
    commits: number;
    writes: number;
    refused: number;
    bytes: number;
    log_bytes: number;
    devices: number;
    mails: number;
  }[];
  talkers: { fleet_id: string; device_id: string; requests_per_second: number }[];
}

/** What happened between two samples. */
export interface TopRates {
  time: string;
  reasons: string[];
  connections: number;
  streams: number;
  requests: { route: string; per_second: number; failed_per_second: number }[];
  /** Upper bounds of the buckets that they are in; null where nothing was answered, or beyond all bounds. */
  latency: { p50_seconds: number | null; p99_seconds: number | null };
  shards: {
    shard: number;
    queue: number;
    commits_per_second: number;
    writes_per_second: number;
    refused_per_second: number;
    bytes: number;
    log_bytes: number;
    devices: number;
    mails: number;
  }[];
  talkers: TopSample['talkers'];
}

export function ratesOf(before: TopSample, after: TopSample): TopRates {
  const seconds = Math.max(0.001, (Date.parse(after.time) - Date.parse(before.time)) / 1_000);
  // A server that was started again counts from 0.
  const rate = (now: number, then = 0): number =>
    Math.round((Math.max(0, now >= then ? now - then : now) / seconds) * 10) / 10;
  const routes = new Map(before.requests.map((one) => [one.route, one]));
  const shards = new Map(before.shards.map((one) => [one.shard, one]));
  const counts = after.latency.counts.map((count, bucket) =>
    Math.max(0, count - (before.latency.counts[bucket] ?? 0)),
  );
  const quantile = (share: number): number | null => quantileOf(counts, after.latency.bounds_seconds, share);
  const { time, reasons, connections, streams, talkers } = after;
  return {
    time,
    reasons,
    connections,
    streams,
    requests: after.requests
      .map(({ route, answered, failed }) => ({
        route,
        per_second: rate(answered, routes.get(route)?.answered),
        failed_per_second: rate(failed, routes.get(route)?.failed),
      }))
      .sort((a, b) => b.per_second - a.per_second),
    latency: { p50_seconds: quantile(0.5), p99_seconds: quantile(0.99) },
    shards: after.shards.map(({ commits, writes, refused, ...shard }) => ({
      ...shard,
      commits_per_second: rate(commits, shards.get(shard.shard)?.commits),
      writes_per_second: rate(writes, shards.get(shard.shard)?.writes),
      refused_per_second: rate(refused, shards.get(shard.shard)?.refused),
    })),
    talkers,
  };
}

function quantileOf(counts: readonly number[], bounds: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  let passed = 0;
  for (const [bucket, count] of counts.entries()) {
    passed += count;
    if (total > 0 && passed >= total * share) return bounds[bucket] ?? null;
  }
  return null;
}
