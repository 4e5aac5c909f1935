import { expect, it } from 'vitest';
import { type CountedRequests, ServerHour } from '../../../src/admin-api/monitoring/server-hour.ts';
import { latencyBounds } from '../../../src/core/telemetry/worker-metrics.ts';

it('a minute has what came in it, and how slow its slowest hundredth was', () => {
  const latencies = Array<number>(latencyBounds.length + 1).fill(0);
  const beat = { route: 'POST /v1/heartbeat', answered: 0, failed: 0 };
  const counted = (): CountedRequests => ({
    routes: new Map([['', { ...beat }]]),
    latencies: [...latencies],
  });
  const answer = (requests: number, bucket: number, failed = 0): void => {
    beat.answered += requests;
    beat.failed += failed;
    latencies[bucket] = (latencies[bucket] ?? 0) + requests;
  };
  answer(500, 3);
  const hour = new ServerHour(counted, 0);
  answer(99, 0);
  answer(1, 2);
  hour.take(60_000);
  answer(97, 0);
  answer(3, latencyBounds.length, 2);
  const last = latencyBounds.at(-1);
  expect(hour.minutes(70_000)).toEqual([
    { endedAtMs: 60_000, seconds: 60, requests: 100, failed: 0, p99Seconds: latencyBounds[0] },
    { endedAtMs: 70_000, seconds: 10, requests: 100, failed: 2, p99Seconds: last },
  ]);
  for (let minute = 2; minute < 100; minute += 1) hour.take(minute * 60_000);
  const minutes = hour.minutes(99 * 60_000 + 5_000);
  expect(minutes).toHaveLength(60);
  expect(minutes[0]).toMatchObject({ endedAtMs: 41 * 60_000, requests: 0, p99Seconds: undefined });
  hour.close();
});
