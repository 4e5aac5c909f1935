import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import type { Benchmark, Size } from '../benchmark.ts';
import { interleave, type Lane } from '../interleave.ts';
import { closedLoopByNode, openLoop } from '../load/open-loop.ts';
import { requestText, writeRequests } from '../load/requests.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { removeFolder } from '../servers/temporary-folder.ts';
import { datapoint, getNext, heartbeat, payload, payloadBytes } from './device-requests.ts';

const fleets: Readonly<Record<Size, readonly number[]>> = {
  short: [1_000, 10_000],
  usual: [1_000, 10_000, 30_000, 100_000],
  full: [1_000, 10_000, 30_000, 100_000],
};
const shards = availableParallelism();
const connections = 256;
const heartbeatSeconds = 60;
const datapointSeconds = 10;
/** Interval of mail for each device: it is fetched, and acknowledged a moment later. */
const mailSeconds = 600;
/** The answer to the one is there when the other is sent. */
const ackDelaySeconds = 0.5;
/** The generator's, plus some to spare. */
const spareSeconds = 2;
/** A small fleet asks little: a shorter time would be too short for the system's clock of CPU time. */
const secondsMin = 10;

interface Due {
  atSeconds: number;
  text: string;
}

/** Requests that the fleet sends in so many seconds, each device at times of its own. */
async function fleetRequests(server: Fleetpost, seconds: number): Promise<string[]> {
  const due: Due[] = [];
  const { devices } = server;
  const every = (intervalSeconds: number, textOf: (device: (typeof devices)[number]) => string): void => {
    for (const device of devices) {
      let atSeconds = Math.random() * intervalSeconds;
      for (; atSeconds < seconds; atSeconds += intervalSeconds) due.push({ atSeconds, text: textOf(device) });
    }
  };
  every(heartbeatSeconds, (device) => requestText(device, heartbeat.request));
  every(datapointSeconds, (device) => requestText(device, datapoint.request));
  const withMail = devices.filter(() => Math.random() < (seconds - ackDelaySeconds) / mailSeconds);
  const ids = await server.enqueue(withMail.map((device) => ({ device, payload })));
  for (const [index, device] of withMail.entries()) {
    const atSeconds = Math.random() * (seconds - ackDelaySeconds);
    const ack = { method: 'PUT', path: `/v1/mailbox/ack/${ids[index]}` } as const;
    due.push({ atSeconds, text: requestText(device, getNext.request) });
    due.push({ atSeconds: atSeconds + ackDelaySeconds, text: requestText(device, ack) });
  }
  return due.sort((a, b) => a.atSeconds - b.atSeconds).map(({ text }) => text);
}

export const mixedFleet: Benchmark = {
  name: 'mixed-fleet',
  about:
    `A fleet at its daily work: of each device a heartbeat every ${heartbeatSeconds} s, a datapoint every ` +
    `${datapointSeconds} s and a mail every ${mailSeconds / 60} minutes, fetched and acknowledged. A rate that is ` +
    'kept is that of the fleet. The devices share a pool of connections, since so many of the client would not fit on ' +
    'the machine beside the server: connections by themselves cost memory, which event-streams measures.',
  async run(options) {
    const servers: Fleetpost[] = [];
    let rateMax = Number.POSITIVE_INFINITY;
    try {
      for (const devices of fleets[options.size]) {
        const fleet = `${devices.toLocaleString('en-GB')} devices`;
        const ratePerSecond = rateOf(devices);
        if (ratePerSecond > rateMax) {
          const reason = `The generator is good for ${rateMax} requests a second here, beside the server; the fleet sends ${ratePerSecond}.`;
          options.skip({ subject: `fleetpost, ${fleet}`, reason });
          continue;
        }
        options.progress(`making ${fleet}`);
        const server = await Fleetpost.start({ shards, devices });
        servers.push(server);
        options.progress(`${fleet}: looking for the highest rate`);
        rateMax = await halfOfHighestRate(server, options.seconds);
      }
      const seconds = options.size === 'short' ? options.seconds : Math.max(options.seconds, secondsMin);
      const lanes = servers.map((server) => laneOf(server, seconds));
      return await interleave(lanes, options);
    } finally {
      for (const server of servers) await server.stop();
    }
  },
};

/** Half of the rate that the generator reaches in a closed loop: at more it would measure itself. */
async function halfOfHighestRate(server: Fleetpost, seconds: number): Promise<number> {
  const requests = writeRequests(server.devices.map((device) => requestText(device, datapoint.request)));
  const load = { requests, statuses: [datapoint.status], connections, seconds };
  const { operationsPerSecond = 0 } = await closedLoopByNode(server, load);
  return Math.round(operationsPerSecond / 2);
}

function rateOf(devices: number): number {
  return Math.round(devices * (1 / heartbeatSeconds + 1 / datapointSeconds + 2 / mailSeconds));
}

function laneOf(server: Fleetpost, seconds: number): Lane {
  const devices = server.devices.length;
  const ratePerSecond = rateOf(devices);
  return {
    workload: 'mixed fleet',
    subject: fleetpost.name,
    conditions: {
      shards,
      connections,
      devices,
      payloadBytes,
      ratePerSecond,
      loop: 'open',
      durability: fleetpost.durability,
    },
    async measure() {
      const requests = writeRequests(await fleetRequests(server, seconds + spareSeconds));
      const load = { requests, statuses: [200, 201], connections, ratePerSecond, seconds };
      try {
        return await openLoop(server, load);
      } finally {
        removeFolder(dirname(requests.file));
      }
    },
  };
}
