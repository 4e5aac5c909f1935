import { setTimeout as wait } from 'node:timers/promises';
import type { Benchmark, Size } from '../benchmark.ts';
import { interleave, type Lane } from '../interleave.ts';
import { call, type Manner } from '../load/callers.ts';
import { requestText } from '../load/requests.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { datapointSchema } from '../servers/payload-schema.ts';
import { cpuFigures, serverTimes } from '../servers/server-times.ts';
import { payload } from './device-requests.ts';
import { seeEveryDevice } from './see-every-device.ts';

const devices: Readonly<Record<Size, number>> = { short: 50, usual: 1_000, full: 1_000 };
const intervalSeconds: Readonly<Record<Size, number>> = { short: 2, usual: 60, full: 60 };
/** Measured in each round. */
const intervals = 2;
const shards = 1;
const body = `{"records":[{"kind":"datapoint","schema":"${datapointSchema}","payload":${payload}}]}`;

const workloads: Readonly<Record<Manner, string>> = {
  reconnects: 'connects for each call',
  waits: 'waits for mail between calls',
  streams: 'holds an event stream, connects for each call',
};

export const calling: Benchmark = {
  name: 'calling',
  about:
    'Devices that send a datapoint by sync once a minute, and what the server pays for what they do between: leave, ' +
    'wait for mail on the same connection, or hold an event stream. CPU and bytes of TLS of one call, with all that ' +
    'lies between two; memory for each device while none calls. Each offers its TLS session (TLS 1.3).',
  async run(options) {
    const { size } = options;
    await using server = await Fleetpost.start({ shards, devices: devices[size], isInspected: true });
    await seeEveryDevice(server);
    const requests = server.devices.map((device) => ({
      sync: requestText(device, { method: 'POST', path: '/v1/sync', body }),
      wait: requestText(device, { method: 'GET', path: '/v1/mailbox/next?wait=SECONDS' }),
      events: requestText(device, { method: 'GET', path: '/v1/events' }),
    }));
    const seconds = intervals * intervalSeconds[size];
    const lanes = (Object.keys(workloads) as Manner[]).map(
      (manner): Lane => ({
        workload: workloads[manner],
        subject: fleetpost.name,
        conditions: { shards, devices: devices[size] },
        measure: () =>
          call(server, { manner, devices: requests, intervalSeconds: intervalSeconds[size], seconds }),
      }),
    );
    lanes.unshift({
      workload: 'nobody calls: what a server needs anyway, by call',
      subject: fleetpost.name,
      conditions: { shards, devices: devices[size] },
      async measure() {
        const before = serverTimes(server);
        await wait(seconds * 1_000);
        return cpuFigures(before, serverTimes(server), intervals * devices[size]);
      },
    });
    // The server ends with this function.
    return await interleave(lanes, options);
  },
};
