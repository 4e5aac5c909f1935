import type { Benchmark } from '../benchmark.ts';
import { interleave, type Lane, warmUp } from '../interleave.ts';
import { missingWrk } from '../load/wrk.ts';
import { bareUws } from '../servers/bare-uws.ts';
import { fastifyPostgres } from '../servers/fastify/postgres.ts';
import { fastifyRedis } from '../servers/fastify/redis.ts';
import { fleetpost } from '../servers/fleetpost.ts';
import { nginx } from '../servers/nginx.ts';
import { withServers } from '../servers/started.ts';
import { closedLoopLane, connectionCounts } from './closed-loop.ts';
import { datapoint, heartbeat } from './device-requests.ts';
import { aim, devices } from './target.ts';

const wanted = [
  { subject: fleetpost, shards: 1 },
  { subject: fleetpost, shards: 2 },
  { subject: nginx, shards: 1 },
  { subject: bareUws, shards: 1 },
  { subject: fastifyRedis, shards: 1 },
  { subject: fastifyPostgres, shards: 1 },
];

export const peers: Benchmark = {
  name: 'peers',
  about:
    'Heartbeat and datapoint beside constant answers (nginx, bare uWebSockets.js) and beside what a team would write instead: ' +
    'Fastify with the same checks on Redis and on PostgreSQL. Ratios are to Fleetpost with one shard.',
  missing: missingWrk,
  run: (options) =>
    withServers(wanted, devices, options, async (started) => {
      const lanes: Lane[] = [];
      for (const workload of [heartbeat, datapoint]) {
        const targets = await Promise.all(started.map((each) => aim(workload, each)));
        for (const connections of connectionCounts(options)) {
          const [own, ...others] = targets.map((target) =>
            closedLoopLane(target, connections, options.seconds),
          );
          if (own === undefined) continue;
          const compareWith = { lane: own, name: fleetpost.name };
          lanes.push(own, ...others.map((lane) => ({ ...lane, compareWith })));
        }
      }
      // The slowest gets the fewest requests, and needs it most.
      await warmUp(lanes, options);
      return interleave(lanes, options);
    }),
};
