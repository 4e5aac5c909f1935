import { errorAnswers } from '../../contract/document.ts';
import { topDocument } from '../../contract/server.ts';
import { deviceIdOf, fleetIdOf } from '../../core/identity.ts';
import { latencyBounds } from '../../core/telemetry/worker-metrics.ts';
import type { AdminApp, AdminContext, Handler } from '../request/context.ts';
import { routesOf } from '../request/route.ts';

const showing = {
  summary: 'Show the current activity of the server',
  response: { 200: topDocument, ...errorAnswers },
};

const showTop =
  ({ metrics, connections, queueDepth, notReady, hold, activity }: AdminContext): Handler<typeof showing> =>
  async () => {
    const talkers = await activity.topTalkers();
    const sizes = activity.sizes();
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
    return {
      time: new Date().toISOString(),
      reasons: notReady().map(({ reason }) => reason),
      held: hold.isHeld,
      connections: connections.open,
      streams: metrics.reduce((sum, { openStreams }) => sum + openStreams, 0),
      requests: [...routes.values()],
      latency: { bounds_seconds: [...latencyBounds], counts: latencies },
      // A row joins a database's sizes with a worker's commits, if there are databases: there may be more of either.
      shards: Array.from({ length: Math.max(metrics.length, sizes.length) }, (_, shard) => {
        const worker = metrics[shard];
        const { bytes = 0, logBytes = 0, devices = 0, mails = 0 } = sizes[shard] ?? {};
        const written = {
          queue: worker === undefined ? 0 : queueDepth(shard),
          commits: worker?.commits ?? 0,
          writes: worker?.committedWrites ?? 0,
          refused: worker?.refusedWrites ?? 0,
        };
        return { shard, ...written, bytes, log_bytes: logBytes, devices, mails };
      }),
      talkers: talkers.map(({ device, requestsPerSecond }) => ({
        fleet_id: fleetIdOf(device),
        device_id: deviceIdOf(device),
        requests_per_second: requestsPerSecond,
      })),
    };
  };

/** Adds `/top`, for `fleetpost top`. Counts are cumulative; the difference of two answers gives rates. */
export function addTopRoute(app: AdminApp, context: AdminContext): void {
  routesOf(app)('GET', '/top', 'read', showing, showTop(context));
}
