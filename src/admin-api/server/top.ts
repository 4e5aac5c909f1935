import type { topRoutes } from '../../contract/server.ts';
import { type DeviceKey, deviceIdOf, fleetIdOf } from '../../core/identity.ts';
import type { NotReady } from '../../core/telemetry/readiness.ts';
import { latencyBounds, type WorkerMetrics } from '../../core/telemetry/worker-metrics.ts';
import type { DeclaredHold } from '../../declarations/declared-hold.ts';
import { countedRequests, type ServerHour } from '../monitoring/server-hour.ts';
import type { Handlers } from '../request/routes.ts';

/** Live figures of shards and devices. */
export interface ActivityView {
  /** Sizes of each shard, as its store counts them. */
  sizes(): readonly { bytes: number; logBytes: number; devices: number; mails: number }[];
  /** Free bytes of the data folder's disk; undefined where it is not watched, and on databases. */
  diskFreeBytes(): number | undefined;
  /** Estimates the busiest devices over all workers, busiest first. */
  topTalkers(): Promise<{ device: DeviceKey; requestsPerSecond: number }[]>;
}

interface Parts {
  /** One per worker; worker k owns shard k. */
  metrics: readonly WorkerMetrics[];
  /** Connections of the device API. */
  connections: { readonly open: number };
  /** Writes in flight to a shard. */
  queueDepth(shard: number): number;
  /** Reasons why devices should not be routed here now; empty if ready. */
  notReady(): readonly NotReady[];
  hold: DeclaredHold;
  activity: ActivityView;
  hour: Pick<ServerHour, 'minutes'>;
}

/** Handles `/top` and its last hour. Counts are cumulative; the difference of two answers gives rates. */
export function topHandlers(parts: Parts): Handlers<typeof topRoutes> {
  const { metrics, connections, queueDepth, notReady, hold, activity, hour } = parts;
  return {
    'GET /top': async () => {
      const talkers = await activity.topTalkers();
      const sizes = activity.sizes();
      const { routes, latencies } = countedRequests(metrics);
      return {
        time: new Date().toISOString(),
        reasons: notReady().map(({ reason }) => reason),
        held: hold.isHeld,
        connections: connections.open,
        streams: metrics.reduce((sum, { openStreams }) => sum + openStreams, 0),
        cpu_seconds: cpuSeconds(),
        memory_bytes: process.memoryUsage.rss(),
        disk_free_bytes: activity.diskFreeBytes() ?? null,
        requests: [...routes.values()],
        latency: { bounds_seconds: [...latencyBounds], counts: [...latencies] },
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
    },
    'GET /top/hour': async () => ({
      time: new Date().toISOString(),
      minutes: hour.minutes().map(({ endedAtMs, seconds, requests, failed, p99Seconds }) => ({
        ended_at: new Date(endedAtMs).toISOString(),
        seconds,
        requests,
        failed,
        p99_seconds: p99Seconds ?? null,
      })),
    }),
  };
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
