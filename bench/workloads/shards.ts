import type { Benchmark, Size } from '../benchmark.ts';
import { interleave, type Lane } from '../interleave.ts';
import { closedLoop, missingWrk } from '../load/wrk.ts';
import { fleetpost } from '../servers/fleetpost.ts';
import { withServers } from '../servers/started.ts';
import { closedLoopLane } from './closed-loop.ts';
import { datapoint } from './device-requests.ts';
import { aim, devices } from './target.ts';

const shardCounts: Readonly<Record<Size, readonly number[]>> = {
  short: [1, 2],
  usual: [1, 2, 4, 8],
  full: [1, 2, 4, 8],
};
/** Enough that a batch finds company even among eight shards. */
const connections = 256;
const warmUpSecondsPerShard = 2;

export const shards: Benchmark = {
  name: 'shards',
  about: 'What more shards cost: durable datapoints, each shard with batches and an fsync of its own.',
  missing: missingWrk,
  run: (options) =>
    withServers(
      shardCounts[options.size].map((shards) => ({ subject: fleetpost, shards })),
      devices,
      options,
      async (started) => {
        const targets = await Promise.all(started.map((each) => aim(datapoint, each)));
        // Each worker compiles the server for itself, so many of them take their time.
        for (const target of targets) {
          const { server, requests, status } = target;
          await closedLoop(server, {
            requests,
            status,
            connections,
            seconds: warmUpSecondsPerShard * target.shards,
          });
        }
        const [one, ...more] = targets.map((target) => closedLoopLane(target, connections, options.seconds));
        if (one === undefined) return [];
        const compareWith: Lane['compareWith'] = { lane: one, name: '1 shard' };
        return interleave([one, ...more.map((lane) => ({ ...lane, compareWith }))], options);
      },
    ),
};
