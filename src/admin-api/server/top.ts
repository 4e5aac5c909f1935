import { Type } from 'typebox';
import { deviceIdOf, fleetIdOf } from '../../core/identity.ts';
import { latencyBounds } from '../../core/telemetry/worker-metrics.ts';
import type { AdminApp, AdminContext, Handler } from '../request/context.ts';
import { errorAnswers } from '../request/documents.ts';

const count = Type.Integer({ minimum: 0 });
const topDocument = Type.Object({
  time: Type.String(),
  reasons: Type.Array(Type.String(), { description: 'Why the server is not ready; empty if it is.' }),
  connections: count,
  streams: count,
  requests: Type.Array(
    Type.Object(
      { route: Type.String(), answered: count, failed: count },
      { description: 'Since the server started.' },
    ),
  ),
  latency: Type.Object({
    bounds_seconds: Type.Array(Type.Number()),
    counts: Type.Array(count, {
      description: 'Since the server started, by bucket; the last for values beyond all bounds.',
    }),
  }),
  shards: Type.Array(
    Type.Object({
      shard: count,
      queue: count,
      commits: count,
      writes: count,
      refused: count,
      bytes: count,
      log_bytes: count,
      devices: count,
      mails: count,
    }),
  ),
  talkers: Type.Array(
    Type.Object({ fleet_id: Type.String(), device_id: Type.String(), requests_per_second: Type.Number() }),
  ),
});

const showing = {
  summary: 'Show the current activity of the server',
  response: { 200: topDocument, ...errorAnswers },
};

const showTop =
  ({ metrics, connections, queueDepth, notReady, activity }: AdminContext): Handler<typeof showing> =>
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
      connections: connections.open,
      streams: metrics.reduce((sum, { openStreams }) => sum + openStreams, 0),
      requests: [...routes.values()],
      latency: { bounds_seconds: [...latencyBounds], counts: latencies },
      shards: metrics.map(({ commits, committedWrites, refusedWrites }, shard) => {
        const { bytes = 0, logBytes = 0, devices = 0, mails = 0 } = sizes[shard] ?? {};
        const written = { commits, writes: committedWrites, refused: refusedWrites };
        return { shard, queue: queueDepth(shard), ...written, bytes, log_bytes: logBytes, devices, mails };
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
  app.get('/top', { config: { scope: 'read' }, schema: showing }, showTop(context));
}
