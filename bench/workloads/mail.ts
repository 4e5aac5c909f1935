import { dirname } from 'node:path';
import { createHistogram } from 'node:perf_hooks';
import type { Benchmark, BenchmarkOptions, Size } from '../benchmark.ts';
import { interleave, type Lane, warmUp } from '../interleave.ts';
import { type DeviceRequest, requestText, writeRequests } from '../load/requests.ts';
import { closedLoop, missingWrk } from '../load/wrk.ts';
import type { Conditions, Figures } from '../result.ts';
import { Fleetpost } from '../servers/fleetpost.ts';
import { enqueuesAtOnce } from '../servers/mail-queue.ts';
import { nginx } from '../servers/nginx.ts';
import { cpuFigures, serverTimes } from '../servers/server-times.ts';
import { type Started, withServers } from '../servers/started.ts';
import type { MailServer, RunningServer } from '../servers/subject.ts';
import { removeFolder } from '../servers/temporary-folder.ts';
import { getNext, payload, payloadBytes } from './device-requests.ts';
import { besideNginx, devices } from './target.ts';

/** Requests that devices make for every mail, one after the other. */
export interface MailWorkload {
  name: string;
  about: string;
  steps: readonly ((mailId: string) => DeviceRequest)[];
}

const connections = 64;
/** A round is over when the mail is: queueing it takes longer than working through it. */
const mailsPerSecond: Readonly<Record<Size, number>> = { short: devices, usual: 6_000, full: 6_000 };
/** Short, for every mail can be used once: a round that is thrown away warms the server up. */
const warmUpSeconds = 0.2;
/** Sent after the last of the mail; its answer has the same status. */
const spare: DeviceRequest = { method: 'GET', path: '/v1/mailbox/size' };

const sampleId = '01900000-0000-7000-8000-000000000000';
export const acknowledge = (mailId: string): DeviceRequest => ({
  method: 'PUT',
  path: `/v1/mailbox/ack/${mailId}`,
});

/** Queues mail for all devices in turn, through the admin API; answers its ids in that order. */
export async function enqueue(
  server: MailServer,
  count: number,
): Promise<{ ids: string[]; figures: Figures }> {
  const rounds = Array.from({ length: Math.ceil(count / devices) }, () => server.devices);
  const mails = rounds.flat().map((device) => ({ device, payload }));
  const startMs = performance.now();
  const before = serverTimes(server);
  const latency = createHistogram();
  const ids = await server.enqueue(mails, latency);
  const figures: Figures = {
    operationsPerSecond: (ids.length * 1_000) / (performance.now() - startMs),
    ...cpuFigures(before, serverTimes(server), ids.length),
    p50Milliseconds: latency.percentile(50) / 1e6,
    p99Milliseconds: latency.percentile(99) / 1e6,
  };
  return { ids, figures };
}

/**
 * Gives for one mail of each device the first step, then the second: so a device's answer to the first is there
 * long before its second is sent, and each mail is at the head when its turn comes.
 */
export function textsOf({ steps }: MailWorkload, server: RunningServer, ids: readonly string[]): string[] {
  const texts: string[] = [];
  for (let start = 0; start < ids.length; start += devices) {
    for (const step of steps) {
      for (const [index, device] of server.devices.entries()) {
        texts.push(requestText(device, step(ids[start + index] ?? '')));
      }
    }
  }
  return texts;
}

/** Figures of requests as figures of mails; latency stays that of a request. */
export function perMail(figures: Figures, { steps }: MailWorkload): Figures {
  const { operationsPerSecond = Number.NaN } = figures;
  const times = (Object.keys(figures) as (keyof Figures)[])
    .filter((key) => key.endsWith('MicrosecondsPerOperation'))
    .map((key) => [key, (figures[key] ?? Number.NaN) * steps.length]);
  return {
    ...figures,
    ...Object.fromEntries(times),
    operationsPerSecond: operationsPerSecond / steps.length,
  };
}

function nginxLane(workload: MailWorkload, started: Started, seconds: number): Lane {
  const { server, subject, shards } = started;
  const requests = writeRequests(textsOf(workload, server, new Array(devices).fill(sampleId)));
  const status = subject.constantStatus ?? 0;
  return {
    workload: workload.name,
    subject: subject.name,
    conditions: { shards, connections, devices, loop: 'closed' },
    measure: async () =>
      perMail(await closedLoop(server, { requests, status, connections, seconds }), workload),
  };
}

/** The mail of each round is queued in a lane of its own, just before. */
function fleetpostLanes(
  workload: MailWorkload,
  started: Started & { server: Fleetpost },
  { seconds, size }: BenchmarkOptions,
): [Lane, Lane] {
  const { server, subject, shards } = started;
  const conditions: Conditions = {
    shards,
    devices,
    payloadBytes,
    durability: subject.durability,
    loop: 'closed',
  };
  let ids: string[] = [];
  const queue: Lane = {
    workload: 'enqueue',
    subject: subject.name,
    conditions: { ...conditions, connections: enqueuesAtOnce },
    async measure() {
      const queued = await enqueue(server, mailsPerSecond[size] * seconds);
      ids = queued.ids;
      return queued.figures;
    },
  };
  const work: Lane = {
    workload: workload.name,
    subject: subject.name,
    conditions: { ...conditions, connections },
    async measure() {
      const texts = textsOf(workload, server, ids);
      const spares = server.devices.slice(0, connections).map((device) => requestText(device, spare));
      const requests = writeRequests([...texts, ...spares]);
      const load = { requests, status: 200, connections, seconds, warmUpSeconds, requestsMax: texts.length };
      const figures = await closedLoop(server, load);
      removeFolder(dirname(requests.file));
      return perMail(figures, workload);
    },
  };
  return [queue, work];
}

function mailBenchmark(workload: MailWorkload): Benchmark {
  return {
    name: workload.name,
    about: workload.about,
    missing: missingWrk,
    run: (options) =>
      withServers(besideNginx(options), devices, options, async (started) => {
        const lanes: Lane[] = [];
        let floor: Lane | undefined;
        for (const one of started) {
          const { server } = one;
          if (server instanceof Fleetpost) {
            const [queue, work] = fleetpostLanes(workload, { ...one, server }, options);
            if (floor) work.compareWith = { lane: floor, name: nginx.name };
            lanes.push(queue, work);
          } else {
            floor = nginxLane(workload, one, options.seconds);
            lanes.push(floor);
          }
        }
        await warmUp(lanes, options);
        return interleave(lanes, options);
      }),
  };
}

export const ack = mailBenchmark({
  name: 'ack',
  about: 'Mail is queued through the admin API, then acknowledged.',
  steps: [acknowledge],
});

export const cycle = mailBenchmark({
  name: 'cycle',
  about:
    'Mail is queued through the admin API; then each is fetched and acknowledged, which counts as one operation.',
  steps: [() => getNext.request, acknowledge],
});
