import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Browser } from 'playwright-core';
import { launchBrowser } from '../../test/console/browser.ts';
import type { Benchmark, BenchmarkOptions, Size } from '../benchmark.ts';
import { nowDrawn, searchTasks, stuckTasks, type Task } from '../console/search-tasks.ts';
import { ConsoleTab, type Drawing, type FirstDrawing, missingBrowser } from '../console/tab.ts';
import { percentilesOf } from '../load/announcements.ts';
import { closedLoopByNode } from '../load/open-loop.ts';
import { requestText, writeRequests } from '../load/requests.ts';
import { StreamHolders } from '../load/stream-holders.ts';
import { median } from '../median.ts';
import type { Conditions, Figures, Result } from '../result.ts';
import { largeFleet } from '../servers/devices.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { importNamed, type NamedDevice } from '../servers/named-devices.ts';
import { removeFolder } from '../servers/temporary-folder.ts';
import { heartbeat, payload } from './device-requests.ts';

const shards = availableParallelism();
const smallFleet = 1_000;
const samplesPerRound: Readonly<Record<Size, number>> = { short: 1, usual: 10, full: 10 };
const stuckSeconds = 5;
/** Longer than it takes: who has called when the fleet is made is active to the end. */
const activeSeconds = 86_400;
/** One device of so many has called lately, has an event stream, mail, or the tag, which some of each have. */
const every = { seen: 10, connected: 2_000, mail: 100, tagged: 11 };
const devicesPerHall = 1_000;
const connections = 64;
/** Longest time for all of the heartbeats: they end when they are answered. */
const heartbeatSeconds = 600;

type Row = Omit<Result, 'benchmark'>;

export const consoleTasks: Benchmark = {
  name: 'console',
  about:
    `The console in a browser, ${samplesPerRound.usual} times a round each: from the HTML of a page that nothing is cached of to ` +
    'its first paint and to Now with its data, and from the press of a key or a button until the result is drawn.',
  missing: missingBrowser,
  async run(options) {
    const config = { stuckSeconds, activeSeconds };
    await using small = await Fleetpost.start({ shards, devices: 0, config });
    await using large = await Fleetpost.start({ shards, devices: 0, config });
    await using browser = await launchBrowser();
    await fill(small, smallFleet, options);
    const ofLarge = await fill(large, largeFleet[options.size], options);
    using _streams = await openStreams(large, ofLarge);
    return [
      ...(await firstDrawings(browser, small, smallFleet, options)),
      ...(await firstDrawings(browser, large, ofLarge.length, options)),
      ...(await tasksOf(browser, large, ofLarge, options)),
    ];
  },
};

function row(workload: string, figures: Figures, conditions: Conditions, rounds: number): Row {
  return { workload, subject: fleetpost.name, conditions, rounds, figures };
}

function figuresOf(milliseconds: readonly number[]): Figures {
  const { p999Milliseconds: _, ...figures } = percentilesOf(milliseconds.map((one) => one * 1_000));
  return figures;
}

function figuresOfDrawings(drawings: readonly Drawing[]): Figures {
  return {
    ...figuresOf(drawings.map(({ milliseconds }) => milliseconds)),
    tabCpuMilliseconds: median(drawings.map(({ cpuMilliseconds }) => cpuMilliseconds)),
  };
}

function textOf({ p50Milliseconds = 0, p99Milliseconds = 0, tabCpuMilliseconds = 0 }: Figures): string {
  const times = [p50Milliseconds, p99Milliseconds, tabCpuMilliseconds].map((one) => `${one.toFixed(0)} ms`);
  return `p50 ${times[0]}, p99 ${times[1]}, CPU ${times[2]}`;
}

function hallOf(index: number): string {
  return `hall-${Math.floor(index / devicesPerHall)}`;
}

/** One device of so many. */
function some(devices: readonly NamedDevice[], share: number): NamedDevice[] {
  return devices.filter((_, index) => index % share === share - 1);
}

async function fill(
  server: Fleetpost,
  count: number,
  { progress }: BenchmarkOptions,
): Promise<NamedDevice[]> {
  const tagsOf = (index: number): string[] => [
    hallOf(index),
    ...(index % every.tagged === 0 ? ['canary'] : []),
  ];
  const devices = await importNamed(server, count, tagsOf, progress);
  progress('heartbeats');
  const seen = some(devices, every.seen);
  const requests = writeRequests(seen.map((device) => requestText(device, heartbeat.request)));
  await closedLoopByNode(server, {
    requests,
    statuses: [heartbeat.status],
    connections,
    seconds: heartbeatSeconds,
    warmUpSeconds: 0,
    requestsCount: seen.length,
  });
  removeFolder(dirname(requests.file));
  await server.enqueue(devices.slice(0, 1).map((device) => ({ device, payload })));
  return devices;
}

function openStreams(server: Fleetpost, devices: readonly NamedDevice[]): Promise<StreamHolders> {
  const request = { method: 'GET', path: '/v1/events' } as const;
  const connected = some(devices, every.connected);
  return StreamHolders.open(
    server,
    connected.map((device) => requestText(device, request)),
  );
}

async function firstDrawings(
  browser: Browser,
  server: Fleetpost,
  devices: number,
  { rounds, size, progress }: BenchmarkOptions,
): Promise<Row[]> {
  const drawings: FirstDrawing[] = [];
  const loads = rounds * samplesPerRound[size];
  // The first one is of code that is not compiled yet.
  for (let load = 0; load <= loads; load += 1) {
    await using tab = await ConsoleTab.open(browser, server, nowDrawn);
    const drawing = await tab.firstDrawing();
    if (load > 0) drawings.push(drawing);
    progress(`first drawing, ${load} of ${loads}: ${textOf(figuresOfDrawings(drawings))}`);
  }
  const conditions = { shards, devices };
  const painted = figuresOf(drawings.map(({ paintedMilliseconds }) => paintedMilliseconds));
  return [
    row('first load: first paint', painted, conditions, rounds),
    row('first load: Now with its data', figuresOfDrawings(drawings), conditions, rounds),
  ];
}

/** First what needs that one mailbox is stuck, then all else. */
async function tasksOf(
  browser: Browser,
  server: Fleetpost,
  devices: readonly NamedDevice[],
  options: BenchmarkOptions,
): Promise<Row[]> {
  await using tab = await ConsoleTab.open(browser, server, nowDrawn);
  await tab.firstDrawing();
  await wait(stuckSeconds * 1_000);
  const conditions = { shards, devices: devices.length };
  const stuck = await runTasks(stuckTasks, tab, conditions, options);
  options.progress('queueing mail');
  await server.enqueue(some(devices, every.mail).map((device) => ({ device, payload })));
  await wait(stuckSeconds * 1_000);
  const halls = Array.from({ length: devices.length / devicesPerHall }, (_, hall) =>
    hallOf(hall * devicesPerHall),
  );
  return [...stuck, ...(await runTasks(searchTasks(devices, halls), tab, conditions, options))];
}

async function runTasks(
  tasks: readonly Task[],
  tab: ConsoleTab,
  conditions: Conditions,
  { rounds, size, progress }: BenchmarkOptions,
): Promise<Row[]> {
  const measured = new Map<Task, Drawing[]>(tasks.map((task) => [task, []]));
  progress('warming up');
  for (const task of tasks) await task.run(tab);
  for (let round = 1; round <= rounds; round += 1) {
    for (const [task, drawings] of measured) {
      const samples = samplesPerRound[size] * (task.times ?? 1);
      for (let sample = 0; sample < samples; sample += 1) drawings.push(await task.run(tab));
      progress(`round ${round} of ${rounds}, ${task.workload}: ${textOf(figuresOfDrawings(drawings))}`);
    }
  }
  return [...measured].map(([task, drawings]) =>
    row(task.workload, figuresOfDrawings(drawings), conditions, rounds),
  );
}
