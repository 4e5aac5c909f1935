import type { Benchmark } from '../benchmark.ts';
import { interleave, type Lane } from '../interleave.ts';
import { connectAgainAndAgain, type HandshakeOptions } from '../load/handshakes.ts';
import { requestText } from '../load/requests.ts';
import { fleetpost } from '../servers/fleetpost.ts';
import { nginx } from '../servers/nginx.ts';
import { type Started, withServers } from '../servers/started.ts';
import { heartbeat } from './device-requests.ts';

const devices = 64;
const connections = 8;
/** A session is resumed only by the worker that made it: with one, always. */
const wanted = [nginx, fleetpost].map((subject) => ({ subject, shards: 1 }));

const kinds = (['TLSv1.3', 'TLSv1.2'] as const).flatMap((version) =>
  [false, true].map((resumed) => ({ version, resumed })),
);

function laneOf(
  { server, subject, shards }: Started,
  { version, resumed }: Pick<HandshakeOptions, 'version' | 'resumed'>,
  seconds: number,
  compareWith: Lane['compareWith'],
): Lane {
  const requests = server.devices.map((device) => requestText(device, heartbeat.request));
  const status = subject.constantStatus ?? heartbeat.status;
  return {
    workload: `${resumed ? 'resumed' : 'full'} handshake, ${version}`,
    subject: subject.name,
    conditions: { shards, connections, loop: 'closed' },
    measure: () => connectAgainAndAgain(server, { version, resumed, requests, status, connections, seconds }),
    ...(compareWith && { compareWith }),
  };
}

export const handshakes: Benchmark = {
  name: 'handshakes',
  about:
    'A new TLS connection for each heartbeat, with a full handshake or resuming the session before it (the client ' +
    'checks which), certificate ECDSA P-256. Latency is from the start of a connection to its answer. The rate is ' +
    'what the client reaches, which needs more CPU for its share than the servers. One shard, since of several ' +
    'worker threads only the one that made a session can resume it.',
  run: (options) =>
    withServers(wanted, devices, options, (started) => {
      const lanes: Lane[] = [];
      for (const kind of kinds) {
        let floor: Lane | undefined;
        for (const one of started) {
          const lane = laneOf(one, kind, options.seconds, floor && { lane: floor, name: nginx.name });
          lanes.push(lane);
          if (one.subject === nginx) floor = lane;
        }
      }
      return interleave(lanes, options);
    }),
};
