import type { Benchmark } from '../benchmark.ts';
import { interleave, type Lane } from '../interleave.ts';
import { closedLoopByNode, openLoop } from '../load/open-loop.ts';
import { closedLoop, missingWrk } from '../load/wrk.ts';
import { fleetpost } from '../servers/fleetpost.ts';
import { nginx } from '../servers/nginx.ts';
import { withServers } from '../servers/started.ts';
import { datapoint, getNext, heartbeat } from './device-requests.ts';
import { aim, conditionsOf, devices, type Target } from './target.ts';

const wanted = [
  { subject: fleetpost, shards: 1 },
  { subject: nginx, shards: 1 },
];
const connections = 256;

/**
 * Half of what the server answers when it is asked as fast as it answers; or, if that is less, half of what
 * the generator of the open loop reaches that way, so that it measures the server and not itself.
 */
async function halfOfHighestRate({ server, requests, status }: Target, seconds: number): Promise<number> {
  const load = { requests, connections, seconds };
  const rates = [
    await closedLoop(server, { ...load, status }),
    await closedLoopByNode(server, { ...load, statuses: [status] }),
  ].map(({ operationsPerSecond = Number.NaN }) => operationsPerSecond);
  return Math.round(Math.min(...rates) / 2);
}

function openLoopLane(target: Target, ratePerSecond: number, seconds: number): Lane {
  const { server, subject, workload, requests, status } = target;
  return {
    workload: workload.name,
    subject: subject.name,
    conditions: { ...conditionsOf(target), connections, loop: 'open', ratePerSecond },
    measure: () => openLoop(server, { requests, statuses: [status], connections, ratePerSecond, seconds }),
  };
}

export const latency: Benchmark = {
  name: 'latency',
  about:
    'Requests at a constant rate: half of the highest that Fleetpost reached just before, or of the highest that the ' +
    'generator of such load can send, if that is less. nginx gets the same rate beside it. Ratios are of the p99.',
  missing: missingWrk,
  run: (options) =>
    withServers(wanted, devices, options, async (started) => {
      const lanes: Lane[] = [];
      for (const workload of [heartbeat, getNext, datapoint]) {
        const [own, floor] = await Promise.all(started.map((each) => aim(workload, each)));
        if (own === undefined) continue;
        options.progress(`${workload.name}: looking for the highest rate`);
        const rate = await halfOfHighestRate(own, options.seconds);
        const lane = openLoopLane(own, rate, options.seconds);
        if (floor) {
          const floorLane = openLoopLane(floor, rate, options.seconds);
          lane.compareWith = { lane: floorLane, name: nginx.name, figure: 'p99Milliseconds' };
          lanes.push(floorLane);
        }
        lanes.push(lane);
      }
      return interleave(lanes, options);
    }),
};
