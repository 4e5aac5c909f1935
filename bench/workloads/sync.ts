import type { Benchmark } from '../benchmark.ts';
import { interleave, type Lane } from '../interleave.ts';
import { closedLoop, missingWrk } from '../load/wrk.ts';
import type { Figures } from '../result.ts';
import { fleetpost } from '../servers/fleetpost.ts';
import { datapointSchema } from '../servers/payload-schema.ts';
import { withServers } from '../servers/started.ts';
import { closedLoopLane } from './closed-loop.ts';
import { datapoint, payload, payloadBytes, type Workload } from './device-requests.ts';
import { aim, conditionsOf, devices, type Target } from './target.ts';

const connections = 64;
const bodyBytesMax = 65_536;
const record = `{"kind":"datapoint","schema":"${datapointSchema}","payload":${payload}}`;
/** As many as a body takes, with a comma each. */
const recordsMax = Math.floor((bodyBytesMax - '{"records":[]}'.length) / (record.length + 1));

function syncOf(records: number): Workload {
  return {
    name: `sync of ${records}`,
    about: '',
    request: {
      method: 'POST',
      path: '/v1/sync',
      body: `{"records":[${Array.from({ length: records }, () => record).join(',')}]}`,
    },
    status: 200,
    isDurable: true,
    hasMail: false,
    payloadBytes,
  };
}

export const sync: Benchmark = {
  name: 'sync',
  about:
    'Syncs of 1, 50 and as many records as 64 KiB take, each checked against its schema and on disk before the 200, ' +
    'beside datapoints alone. An operation is a record.',
  missing: missingWrk,
  run: (options) =>
    withServers([{ subject: fleetpost, shards: 1 }], devices, options, async ([started]) => {
      if (started === undefined) return [];
      const alone = closedLoopLane(await aim(datapoint, started), connections, options.seconds);
      const lanes = [alone];
      for (const records of [1, 50, recordsMax]) {
        lanes.push(syncLane(await aim(syncOf(records), started), records, options.seconds, alone));
      }
      return interleave(lanes, options);
    }),
};

function syncLane(target: Target, records: number, seconds: number, alone: Lane): Lane {
  const { server, subject, workload, requests, status } = target;
  return {
    workload: workload.name,
    subject: subject.name,
    conditions: { ...conditionsOf(target), connections, loop: 'closed', batch: records },
    measure: async () =>
      perRecord(await closedLoop(server, { requests, status, connections, seconds }), records),
    compareWith: { lane: alone, name: 'datapoints alone', figure: 'cpuMicrosecondsPerOperation' },
  };
}

function perRecord(figures: Figures, records: number): Figures {
  const { operationsPerSecond = 0, cpuMicrosecondsPerOperation = 0 } = figures;
  return {
    ...figures,
    operationsPerSecond: operationsPerSecond * records,
    cpuMicrosecondsPerOperation: cpuMicrosecondsPerOperation / records,
  };
}
