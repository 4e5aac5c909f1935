import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { launchBrowser } from '../../test/console/browser.ts';
import type { Benchmark, BenchmarkOptions } from '../benchmark.ts';
import { ConsoleTab, missingBrowser } from '../console/tab.ts';
import { TabMemory } from '../console/tab-memory.ts';
import { openLoop } from '../load/open-loop.ts';
import { requestText, writeRequests } from '../load/requests.ts';
import type { Figures, Result } from '../result.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { removeFolder } from '../servers/temporary-folder.ts';
import { datapoint, payloadBytes } from './device-requests.ts';

const shards = availableParallelism();
const devices = 1_000;
const connections = 16;
const ratePerSecond = 1_000;
/** The generator looks so often at what is due, and leaves the core to the browser in between. */
const turnMs = 10;
/** Duration of the load before the first round. */
const warmUpSeconds = 1;

type Row = Omit<Result, 'benchmark'>;

export const consoleLive: Benchmark = {
  name: 'console-live',
  about:
    `A tab of the console that follows Live at ${ratePerSecond.toLocaleString('en-GB')} datapoints a second: memory of ` +
    'its process and its JavaScript heap after each round. An hour, minute by minute: --rounds 60 --seconds 60.',
  missing: missingBrowser,
  async run(options) {
    options.progress(`making ${devices.toLocaleString('en-GB')} devices`);
    await using server = await Fleetpost.start({ shards, devices });
    await using browser = await launchBrowser();
    const open = [{ selector: '.head .state.is-connected', text: 'following' }];
    await using tab = await ConsoleTab.open(browser, server, open, '/live');
    await tab.firstDrawing();
    const [rows, figures] = await Promise.all([
      follow(tab, await TabMemory.of(browser, tab.page), options),
      send(server, options.rounds * options.seconds),
    ]);
    return [...rows, { ...row('datapoints meanwhile', figures), rounds: options.rounds }];
  },
};

function row(workload: string, figures: Figures): Row {
  const conditions = { shards, devices, ratePerSecond, payloadBytes, loop: 'open' } as const;
  return { workload, subject: fleetpost.name, conditions, rounds: 1, figures };
}

/** @throws Error when the tab does not follow any more. */
async function follow(
  { page }: ConsoleTab,
  memory: TabMemory,
  { rounds, seconds, progress }: BenchmarkOptions,
): Promise<Row[]> {
  const startMs = performance.now() + warmUpSeconds * 1_000;
  const rows: Row[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    await wait(startMs + round * seconds * 1_000 - performance.now());
    const figures = await memory.read();
    const state = await page.locator('.head [role=status]').innerText();
    if (!state.startsWith('following')) throw new Error(`the tab says: ${state}`);
    rows.push(row(`Live, after ${round * seconds} s`, figures));
    const { residentMegabytes, heapMegabytes } = figures;
    const text = `${residentMegabytes.toFixed(0)} MB, heap ${heapMegabytes.toFixed(1)} MB`;
    progress(`round ${round} of ${rounds}: ${text}, ${state.replaceAll('\n', ', ')}`);
  }
  return rows;
}

/** Datapoints of all devices in turn. */
async function send(server: Fleetpost, seconds: number): Promise<Figures> {
  const requests = writeRequests(server.devices.map((device) => requestText(device, datapoint.request)));
  try {
    const statuses = [datapoint.status];
    return await openLoop(server, { requests, statuses, connections, ratePerSecond, seconds, turnMs });
  } finally {
    removeFolder(dirname(requests.file));
  }
}
