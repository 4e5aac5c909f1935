import { expect, it } from 'vitest';
import { WorkerMetrics } from '../../../src/core/telemetry/worker-metrics.ts';

it('a status that is not listed is counted as such, for its own route', () => {
  const routes = ['GET /first', 'GET /second'];
  const metrics = new WorkerMetrics(routes, WorkerMetrics.allocate(routes));
  for (const route of routes.keys()) {
    metrics.answered(route, 418, 0.001);
    metrics.answered(route, 200, 0.001);
  }
  expect([...metrics.requests()]).toEqual(
    routes.flatMap((route) => [
      { route, status: 200, count: 1 },
      { route, status: 'other', count: 1 },
    ]),
  );
  // Nothing of it is counted as anything else.
  expect([metrics.droppedLetters, metrics.latency().counts[1]]).toEqual([0, 4]);
});
