import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { BroadcastDocument } from '../../src/contract/broadcast.ts';
import { below, pathTo } from '../../src/contract/routes/path.ts';
import type { Benchmark } from '../benchmark.ts';
import { interleave, type Lane, warmUp } from '../interleave.ts';
import { openLoop } from '../load/open-loop.ts';
import { requestText, writeRequests } from '../load/requests.ts';
import type { Figures } from '../result.ts';
import { fleetId, largeFleet } from '../servers/devices.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { removeFolder } from '../servers/temporary-folder.ts';
import { heartbeat, payload } from './device-requests.ts';

const shards = availableParallelism();
const connections = 16;
const ratePerSecond = 500;
const askMs = 100;
const path = pathTo('/fleets/{fleet_id}/broadcasts', { fleet_id: fleetId });

export const broadcast: Benchmark = {
  name: 'broadcast',
  about:
    'A broadcast to every device of a fleet, from the request to its end, and heartbeats at a constant rate, of devices ' +
    'drawn from all of it, without one and while one is sent. Ratios are of the p99.',
  async run(options) {
    const devices = largeFleet[options.size];
    options.progress(`making ${devices.toLocaleString('en-GB')} devices`);
    await using server = await Fleetpost.start({ shards, devices });
    const conditions = { shards, devices };
    const ofHeartbeats = { connections, ratePerSecond, loop: 'open' as const, durability: 'none' };
    const alone: Lane = {
      workload: heartbeat.name,
      subject: 'alone',
      conditions: { ...conditions, ...ofHeartbeats },
      measure: () => heartbeats(server, options.seconds),
    };
    const beside: Lane = {
      ...alone,
      subject: 'beside a broadcast',
      measure: () => besideBroadcast(server, options.seconds),
      compareWith: { lane: alone, name: 'alone', figure: 'p99Milliseconds' },
    };
    const whole: Lane = {
      workload: 'broadcast to all',
      subject: fleetpost.name,
      conditions: { ...conditions, payloadBytes: payload.length, durability: fleetpost.durability },
      measure: () => wholeBroadcast(server, devices),
    };
    await warmUp([alone], options);
    // Awaited here, or the server would be gone.
    return await interleave([alone, beside, whole], options);
  },
};

async function heartbeats(server: Fleetpost, seconds: number): Promise<Figures> {
  const texts = Array.from({ length: ratePerSecond * (seconds + 2) }, () => {
    const device = server.devices[Math.floor(Math.random() * server.devices.length)];
    if (device === undefined) throw new Error('the fleet has no devices');
    return requestText(device, heartbeat.request);
  });
  const requests = writeRequests(texts);
  try {
    const load = { requests, statuses: [heartbeat.status], connections, ratePerSecond, seconds };
    // The time that a broadcast takes is none of theirs.
    const { cpuMicrosecondsPerOperation: _, ...figures } = await openLoop(server, load);
    return figures;
  } finally {
    removeFolder(dirname(requests.file));
  }
}

/** One after another for as long as it takes, so that all of the measurement is beside one. */
async function besideBroadcast(server: Fleetpost, seconds: number): Promise<Figures> {
  let isOver = false;
  const sending = (async () => {
    while (!isOver) await end(server, await put(server), () => isOver);
  })();
  try {
    return await heartbeats(server, seconds);
  } finally {
    isOver = true;
    await sending;
  }
}

async function wholeBroadcast(server: Fleetpost, devices: number): Promise<Figures> {
  const startMs = performance.now();
  const { queued, refused } = await end(server, await put(server), () => false);
  if (queued !== devices || refused > 0) throw new Error(`${queued} mails were queued, ${refused} refused`);
  return { operationsPerSecond: (devices * 1_000) / (performance.now() - startMs) };
}

function put(server: Fleetpost): Promise<BroadcastDocument> {
  const json = {
    name: 'update',
    payload: JSON.parse(payload) as Record<string, unknown>,
    to: { all: true as const },
  };
  return server.admin.request('POST', path, { json });
}

/** Settles when it has ended, or is cancelled since it is no longer wanted. */
async function end(
  server: Fleetpost,
  sent: BroadcastDocument,
  isUnwanted: () => boolean,
): Promise<BroadcastDocument> {
  let last = sent;
  while (last.state === 'running') {
    await wait(askMs);
    const own = below(path, '/{broadcast_id}', { broadcast_id: last.broadcast_id });
    last = isUnwanted()
      ? await server.admin.request('POST', below(own, '/cancel', {}))
      : await server.admin.request('GET', own);
  }
  return last;
}
