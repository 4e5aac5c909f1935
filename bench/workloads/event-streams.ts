import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Benchmark, BenchmarkOptions, Size } from '../benchmark.ts';
import { percentilesOf, sendAndAwait } from '../load/announcements.ts';
import { requestText } from '../load/requests.ts';
import { StreamHolders } from '../load/stream-holders.ts';
import { missingWrk } from '../load/wrk.ts';
import type { Figures, Result } from '../result.ts';
import { cpuMicroseconds } from '../servers/cpu-time.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { residentBytes } from '../servers/resident-memory.ts';
import { seeEveryDevice } from './see-every-device.ts';

const streamsWanted: Readonly<Record<Size, number>> = { short: 1_000, usual: 15_000, full: 15_000 };
/** Descriptors of a server that are none of its streams. */
const descriptorsSpared = 500;
const ratePerSecond = 1_000;
const payload = Buffer.from('{"seconds":30}');
/** Duration of mail before the rounds, for code to be compiled. */
const warmUpSeconds = 4;

/** How many files a process may have open here; Node raises its own limit that far by itself. */
function descriptorsMax(): number {
  const limit = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit);
}

export const eventStreams: Benchmark = {
  name: 'event-streams',
  about:
    'Memory of an idle event stream: the growth of the resident memory of the server, garbage collected, ' +
    'with one TLS stream a device, each seen before. Then mail to random ones of them through the admin API, ' +
    'a request each at a constant rate: the time from when a mail was due to be queued until its event was read.',
  missing: missingWrk,
  run(options) {
    const wanted = streamsWanted[options.size];
    const streams = Math.min(wanted, descriptorsMax() - descriptorsSpared);
    if (streams < wanted) {
      const needed = wanted + descriptorsSpared;
      const reason = `only ${streams} of ${wanted} streams: the limit of open files is too low (ulimit -Hn ${needed} raises it).`;
      options.skip({ subject: fleetpost.name, reason });
    }
    return measure(streams, options);
  },
};

async function measure(
  streams: number,
  { rounds, seconds, progress }: BenchmarkOptions,
): Promise<Omit<Result, 'benchmark'>[]> {
  const shards = availableParallelism();
  progress(`${streams} devices`);
  await using server = await Fleetpost.start({ shards, devices: streams, isInspected: true });
  await seeEveryDevice(server);
  const bytesBefore = await residentBytes(server);
  progress(`opening ${streams} streams`);
  const requests = server.devices.map((device) => requestText(device, { method: 'GET', path: '/v1/events' }));
  using holders = await StreamHolders.open(server, requests);
  const bytesPerStream = ((await residentBytes(server)) - bytesBefore) / streams;
  progress(`${ratePerSecond} mails a second`);
  const mailFigures = await announce(server, holders, rounds * seconds);
  const conditions = { shards, streams, devices: streams };
  return [
    {
      workload: 'idle event stream',
      subject: fleetpost.name,
      conditions,
      rounds: 1,
      figures: { bytesPerStream },
    },
    {
      workload: 'mail, from queue to event',
      subject: fleetpost.name,
      conditions: {
        ...conditions,
        ratePerSecond,
        payloadBytes: payload.length,
        loop: 'open',
        durability: fleetpost.durability,
      },
      rounds: 1,
      figures: mailFigures,
    },
  ];
}

async function announce(server: Fleetpost, holders: StreamHolders, seconds: number): Promise<Figures> {
  const send = (duration: number): Promise<number[]> =>
    sendAndAwait(server, server.devices, holders, { ratePerSecond, seconds: duration, payload });
  await send(warmUpSeconds);
  const cpuBefore = cpuMicroseconds(server.processIds());
  const startMs = performance.now();
  const latencies = await send(seconds);
  const cpu = cpuMicroseconds(server.processIds()) - cpuBefore;
  return {
    operationsPerSecond: (latencies.length * 1_000) / (performance.now() - startMs),
    cpuMicrosecondsPerOperation: cpu / latencies.length,
    ...percentilesOf(latencies),
  };
}
