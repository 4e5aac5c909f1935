import { dirname } from 'node:path';
import type { QueryAt } from '../../src/contract/routes/path.ts';
import { below, pathTo } from '../../src/contract/routes/path.ts';
import type { Benchmark, BenchmarkOptions, Size } from '../benchmark.ts';
import { interleave, type Lane, warmUp } from '../interleave.ts';
import { percentilesOf } from '../load/announcements.ts';
import { closedLoopByNode } from '../load/open-loop.ts';
import { requestText, writeRequests } from '../load/requests.ts';
import type { Figures } from '../result.ts';
import { fleetId } from '../servers/devices.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { importNamed, type NamedDevice } from '../servers/named-devices.ts';
import { datapointSchema } from '../servers/payload-schema.ts';
import { removeFolder } from '../servers/temporary-folder.ts';
import { datapoint } from './device-requests.ts';

/** One shard, so that all records are between those of the device. */
const shards = 1;
const otherDevices = 10_000;
/** Readings of the device: one a minute for 7 days. */
const ownRecords = 10_080;
/** Records of others between two of them. */
const between: Readonly<Record<Size, number>> = { short: 2, usual: 9, full: 99 };
const connections = 256;
const sendingSecondsMax = 900;
const weekMs = 604_800_000;

export const deviceRecords: Benchmark = {
  name: 'device-records',
  about:
    `${ownRecords.toLocaleString('en-GB')} datapoints of one device, ${between.full} of others between each two, with --full, in the log of one shard: ` +
    'its chart of 7 days, its newest records, and those of a device that has sent nothing, through the admin API.',
  async run(options) {
    // Its week is sent in seconds.
    const config = { deviceRequestsPerSecondMax: 0 };
    await using server = await Fleetpost.start({ shards, devices: 0, config });
    const devices = await importNamed(server, otherDevices, () => [], options.progress);
    const [own, silent, ...others] = devices;
    if (own === undefined || silent === undefined) throw new Error('the devices were not made');
    await fill(server, own, others, options);
    const records = ownRecords * (between[options.size] + 1);
    const lanes = [
      lane('chart of 7 days', records, options, () => chart(server, own)),
      lane('its newest 100', records, options, () => newest(server, own)),
      lane('the newest 100 of one without any', records, options, () => newest(server, silent)),
    ];
    await warmUp(lanes, options);
    // Awaited here, or the server would be gone.
    return await interleave(lanes, options);
  },
};

async function fill(
  server: Fleetpost,
  own: NamedDevice,
  others: readonly NamedDevice[],
  { size, progress }: BenchmarkOptions,
): Promise<void> {
  progress('sending datapoints');
  const ownText = requestText(own, datapoint.request);
  const texts = others.flatMap((device, index) => {
    const text = requestText(device, datapoint.request);
    return index % between[size] === 0 ? [ownText, text] : [text];
  });
  const requests = writeRequests(texts);
  await closedLoopByNode(server, {
    requests,
    statuses: [datapoint.status],
    connections,
    seconds: sendingSecondsMax,
    warmUpSeconds: 0,
    requestsCount: ownRecords * (between[size] + 1),
  });
  removeFolder(dirname(requests.file));
}

function lane(
  workload: string,
  records: number,
  { seconds }: BenchmarkOptions,
  ask: () => Promise<void>,
): Lane {
  return {
    workload,
    subject: fleetpost.name,
    conditions: { shards, records, connections: 1, loop: 'closed' },
    measure: () => asked(ask, seconds),
  };
}

async function asked(ask: () => Promise<void>, seconds: number): Promise<Figures> {
  const latencies: number[] = [];
  const endMs = performance.now() + seconds * 1_000;
  while (performance.now() < endMs) {
    const startMs = performance.now();
    await ask();
    latencies.push((performance.now() - startMs) * 1_000);
  }
  return percentilesOf(latencies);
}

async function chart(server: Fleetpost, { deviceId }: NamedDevice): Promise<void> {
  const device = pathTo('/fleets/{fleet_id}/devices/{device_id}', { fleet_id: fleetId, device_id: deviceId });
  const from = new Date(Date.now() - weekMs).toISOString();
  const series = await server.admin.request('GET', below(device, '/series', {}), {
    query: { schema: datapointSchema, from, points: 300 },
  });
  const count = series.fields.flatMap((field) => field.count).reduce((sum, one) => sum + one, 0);
  if (series.partial || count < ownRecords - connections)
    throw new Error(`the chart has ${count} records, partial: ${series.partial}`);
}

async function newest(server: Fleetpost, { deviceId }: NamedDevice): Promise<void> {
  const path = pathTo('/fleets/{fleet_id}/records:latest', { fleet_id: fleetId });
  const query: QueryAt<'GET', '/fleets/{fleet_id}/records:latest'> = { device: [deviceId], limit: 100 };
  await server.admin.request('GET', path, { query });
}
