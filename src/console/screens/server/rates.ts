import type { TopDocument } from '../../../contract/server.ts';

export interface RouteRate {
  route: string;
  perSecond: number;
  failedPerSecond: number;
}

export type ShardRate = TopDocument['shards'][number] & {
  /** Undefined until they are measured. */
  commitsPerSecond?: number;
  writesPerSecond?: number;
  refusedPerSecond?: number;
};

/** Activity of a server between two answers of `/top`, as `fleetpost top` shows it. */
export interface ServerRates {
  requestsPerSecond: number;
  /** Upper bounds of the quantiles' buckets; undefined if nothing was answered, or beyond all bounds. */
  p50Ms: number | undefined;
  p99Ms: number | undefined;
  /** Share of one core: 1.5 is one and a half. */
  cpuCores: number;
  routes: readonly RouteRate[];
  shards: readonly ShardRate[];
}

function quantileMs(counts: readonly number[], bounds: readonly number[], share: number): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0);
  let passed = 0;
  for (const [bucket, count] of counts.entries()) {
    passed += count;
    const bound = bounds[bucket];
    if (total > 0 && passed >= total * share) return bound === undefined ? undefined : bound * 1_000;
  }
  return undefined;
}

/** Rates of two answers. A server that has restarted counts from 0. */
export function ratesBetween(before: TopDocument, after: TopDocument): ServerRates {
  const seconds = Math.max(0.001, (Date.parse(after.time) - Date.parse(before.time)) / 1_000);
  const rate = (now: number, then = 0): number => Math.max(0, now >= then ? now - then : now) / seconds;
  const routesBefore = new Map(before.requests.map((one) => [one.route, one]));
  const shardsBefore = new Map(before.shards.map((one) => [one.shard, one]));
  const counts = after.latency.counts.map((count, bucket) =>
    Math.max(0, count - (before.latency.counts[bucket] ?? 0)),
  );
  const routes = after.requests
    .map(({ route, answered, failed }) => ({
      route,
      perSecond: rate(answered, routesBefore.get(route)?.answered),
      failedPerSecond: rate(failed, routesBefore.get(route)?.failed),
    }))
    .sort((a, b) => b.perSecond - a.perSecond);
  return {
    cpuCores: rate(after.cpu_seconds, before.cpu_seconds),
    requestsPerSecond: routes.reduce((sum, { perSecond }) => sum + perSecond, 0),
    p50Ms: quantileMs(counts, after.latency.bounds_seconds, 0.5),
    p99Ms: quantileMs(counts, after.latency.bounds_seconds, 0.99),
    routes,
    shards: after.shards.map((shard) => ({
      ...shard,
      commitsPerSecond: rate(shard.commits, shardsBefore.get(shard.shard)?.commits),
      writesPerSecond: rate(shard.writes, shardsBefore.get(shard.shard)?.writes),
      refusedPerSecond: rate(shard.refused, shardsBefore.get(shard.shard)?.refused),
    })),
  };
}

/** Older figures say nothing of what the server does now. */
const keptMs = 600_000;

/** The last answer and its rates, kept in the page: who comes back to the screen sees numbers at once. */
let known: { last: TopDocument; rates?: ServerRates } | undefined;

/** The rates of the last two answers; of the first one alone none. */
export function useServerRates(top: TopDocument): ServerRates | undefined {
  const passedMs = known === undefined ? keptMs : Date.parse(top.time) - Date.parse(known.last.time);
  if (known === undefined || passedMs >= keptMs) known = { last: top };
  else if (passedMs > 0) known = { last: top, rates: ratesBetween(known.last, top) };
  return known.rates;
}
