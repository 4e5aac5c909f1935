import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Benchmark, BenchmarkOptions } from '../benchmark.ts';
import { interleave, type Lane } from '../interleave.ts';
import { statusOf } from '../load/answer.ts';
import { requestText, writeRequests } from '../load/requests.ts';
import { closedLoop, missingWrk } from '../load/wrk.ts';
import type { Conditions } from '../result.ts';
import { largeFleet } from '../servers/devices.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { loadMail } from '../servers/mail-loader.ts';
import { removeFolder } from '../servers/temporary-folder.ts';
import { datapoint, getNext, heartbeat, payload, type Workload } from './device-requests.ts';
import { seeEveryDevice } from './see-every-device.ts';

const smallFleet = 1_000;
const mailsPerDevice = 10;
const connections = 64;
const shards = availableParallelism();
/** Requests of one measurement, each of a device drawn from the whole fleet: more than are answered. */
const requestsPerSecond = 60_000;
/** Duration of datapoints before the process is killed in the midst of them. */
const loadMs = 1_200;

export const fleetSize: Benchmark = {
  name: 'fleet-size',
  about:
    'The same requests with a small and a large fleet, each from a device drawn from all of it, and how soon the ' +
    'server answers after a stop and after kill -9 among datapoints. Mail was loaded into the data folder while ' +
    'the server was down, by its own code.',
  missing: missingWrk,
  async run(options) {
    await using small = await startLoaded(smallFleet, options);
    await using large = await startLoaded(largeFleet[options.size], options);
    const requests: Lane[] = [];
    for (const workload of [heartbeat, getNext]) {
      const own = requestLane(workload, small, options.seconds);
      const compareWith = { lane: own, name: `${smallFleet.toLocaleString('en-GB')} devices` };
      requests.push(own, { ...requestLane(workload, large, options.seconds), compareWith });
    }
    const starts = [small, large].flatMap((server) => [
      startLane('start after a stop', server, (running) => running.end()),
      startLane('start after kill -9', server, killAmongDatapoints),
    ]);
    // One after the other, for a start forgets which devices are known.
    return [...(await interleave(requests, options)), ...(await interleave(starts, options))];
  },
};

async function startLoaded(devices: number, { progress }: BenchmarkOptions): Promise<Fleetpost> {
  const fleet = `${devices.toLocaleString('en-GB')} devices`;
  progress(`making ${fleet}`);
  // As the tuning guide has it: above the fleet's size, here with both generations of devices in mind.
  const server = await Fleetpost.start({ shards, devices, config: { cachedDevicesMax: 2 * devices } });
  await server.end();
  await loadMail(server.data, shards, {
    devices: server.devices,
    mailsPerDevice,
    payload: Buffer.from(payload),
    progress: (mails) => progress(`queueing mail for ${fleet}: ${mails.toLocaleString('en-GB')}`),
  });
  await server.begin();
  progress(`seeing ${fleet}`);
  await seeEveryDevice(server);
  return server;
}

function conditionsOf({ devices }: Fleetpost): Conditions {
  return { shards, devices: devices.length, queuedMails: devices.length * mailsPerDevice };
}

function requestLane({ name, request, status }: Workload, server: Fleetpost, seconds: number): Lane {
  return {
    workload: name,
    subject: fleetpost.name,
    conditions: { ...conditionsOf(server), connections, loop: 'closed' },
    async measure() {
      const texts = Array.from({ length: requestsPerSecond * (seconds + 1) }, () => {
        const device = server.devices[Math.floor(Math.random() * server.devices.length)];
        if (device === undefined) throw new Error('the fleet has no devices');
        return requestText(device, request);
      });
      const requests = writeRequests(texts);
      try {
        return await closedLoop(server, { requests, status, connections, seconds });
      } finally {
        removeFolder(dirname(requests.file));
      }
    },
  };
}

function startLane(workload: string, server: Fleetpost, end: (running: Fleetpost) => Promise<void>): Lane {
  const [device] = server.devices;
  if (device === undefined) throw new Error('the fleet has no devices');
  return {
    workload,
    subject: fleetpost.name,
    conditions: conditionsOf(server),
    async measure() {
      await end(server);
      const startMs = performance.now();
      await server.begin();
      const status = await statusOf(server, requestText(device, heartbeat.request));
      if (status !== heartbeat.status) throw new Error(`the first answer had status ${status}`);
      return { startMilliseconds: performance.now() - startMs };
    },
  };
}

async function killAmongDatapoints(server: Fleetpost): Promise<void> {
  const some = server.devices.slice(0, smallFleet);
  const requests = writeRequests(some.map((device) => requestText(device, datapoint.request)));
  const load = closedLoop(server, { requests, status: datapoint.status, connections, seconds: 1 });
  // It cannot end well.
  const ended = load.then(
    () => {},
    () => {},
  );
  await wait(loadMs);
  await server.end('SIGKILL');
  await ended;
  removeFolder(dirname(requests.file));
}
