import { minuteMs } from '../../core/minute-ring.ts';
import { quantileBucket } from '../../core/telemetry/quantile-bucket.ts';
import { latencyBounds, type WorkerMetrics } from '../../core/telemetry/worker-metrics.ts';

const minutesKept = 60;
const slowShare = 0.99;

/** Sums of all workers since the start of this node. */
export interface CountedRequests {
  routes: ReadonlyMap<string, { route: string; answered: number; failed: number }>;
  /** Requests by the bucket of their latency. */
  latencies: readonly number[];
}

/** Adds up what all workers have counted. */
export function countedRequests(metrics: readonly WorkerMetrics[]): CountedRequests {
  const routes = new Map<string, { route: string; answered: number; failed: number }>();
  const latencies = Array<number>(latencyBounds.length + 1).fill(0);
  for (const worker of metrics) {
    for (const { route, status, count: requests } of worker.requests()) {
      const sum = routes.get(route) ?? { route, answered: 0, failed: 0 };
      sum.answered += requests;
      if (status === 'other' || status >= 500) sum.failed += requests;
      routes.set(route, sum);
    }
    for (const [bucket, inBucket] of worker.latency().counts.entries()) {
      latencies[bucket] = (latencies[bucket] ?? 0) + inBucket;
    }
  }
  return { routes, latencies };
}

/** A minute of the server; the last one may have begun only. */
export interface ServerMinute {
  endedAtMs: number;
  seconds: number;
  requests: number;
  failed: number;
  /** Upper bound of the bucket; of one beyond all bounds the largest. Undefined if nothing was answered. */
  p99Seconds: number | undefined;
}

interface Taken {
  atMs: number;
  answered: number;
  failed: number;
  latencies: readonly number[];
}

/** The last hour of this node, by minute: what was counted at the end of each. */
export class ServerHour {
  readonly #counted: () => CountedRequests;
  readonly #taken: Taken[] = [];
  readonly #timer: NodeJS.Timeout;

  constructor(counted: () => CountedRequests, nowMs = Date.now()) {
    this.#counted = counted;
    this.take(nowMs);
    this.#timer = setInterval(() => this.take(), minuteMs);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Ends a minute. */
  take(nowMs = Date.now()): void {
    this.#taken.push(this.#now(nowMs));
    if (this.#taken.length > minutesKept) this.#taken.shift();
  }

  minutes(nowMs = Date.now()): ServerMinute[] {
    const all = [...this.#taken, this.#now(nowMs)];
    return all.slice(1).map((after, index) => minuteBetween(all[index] ?? after, after));
  }

  #now(atMs: number): Taken {
    const { routes, latencies } = this.#counted();
    const sum = { answered: 0, failed: 0 };
    for (const { answered, failed } of routes.values()) {
      sum.answered += answered;
      sum.failed += failed;
    }
    return { atMs, ...sum, latencies };
  }
}

function minuteBetween(before: Taken, after: Taken): ServerMinute {
  const counts = after.latencies.map((count, bucket) => count - (before.latencies[bucket] ?? 0));
  const slow = quantileBucket(counts, slowShare);
  return {
    endedAtMs: after.atMs,
    seconds: Math.max(0, after.atMs - before.atMs) / 1_000,
    requests: after.answered - before.answered,
    failed: after.failed - before.failed,
    p99Seconds: slow === undefined ? undefined : (latencyBounds[slow] ?? latencyBounds.at(-1)),
  };
}
