import type { Benchmark, BenchmarkOptions } from '../benchmark.ts';
import { interleave, type Lane } from '../interleave.ts';
import { closedLoop, missingWrk } from '../load/wrk.ts';
import { nginx } from '../servers/nginx.ts';
import { withServers } from '../servers/started.ts';
import type { Workload } from './device-requests.ts';
import { aim, besideNginx, conditionsOf, devices, type Target } from './target.ts';

export function connectionCounts({ size }: BenchmarkOptions): readonly number[] {
  return size === 'short' ? [64] : [64, 256];
}

export function closedLoopLane(
  target: Target,
  connections: number,
  seconds: number,
  compareWith?: Lane['compareWith'],
): Lane {
  const { server, subject, workload, requests, status } = target;
  return {
    workload: workload.name,
    subject: subject.name,
    conditions: { ...conditionsOf(target), connections, loop: 'closed' },
    measure: () => closedLoop(server, { requests, status, connections, seconds }),
    ...(compareWith && { compareWith }),
  };
}

/** Compares with nginx, which answers the same number of requests without looking at them. */
export function requestBenchmark(workload: Workload): Benchmark {
  return {
    name: workload.name,
    about: workload.about,
    missing: missingWrk,
    run: (options) =>
      withServers(besideNginx(options), devices, options, async (started) => {
        const targets = await Promise.all(started.map((each) => aim(workload, each)));
        const lanes: Lane[] = [];
        for (const connections of connectionCounts(options)) {
          for (const target of targets) {
            const floor = lanes.find(
              ({ subject, conditions }) =>
                subject === nginx.name &&
                conditions.shards === target.shards &&
                conditions.connections === connections,
            );
            lanes.push(
              closedLoopLane(
                target,
                connections,
                options.seconds,
                floor && { lane: floor, name: nginx.name },
              ),
            );
          }
        }
        return interleave(lanes, options);
      }),
  };
}
