import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { TestServer } from '../harness/server/server.ts';
import { Random } from './random.ts';
import { Storm } from './storm.ts';

/**
 * `npm run test:soak`: the storm's load for a long time, ended at random by kill -9 or a regular end, with
 * keys and log that are forgotten after two and a half minutes. What the server holds is looked at just before
 * each end, and must be flat: over the last third of the run the median of each figure is at most a fifth
 * above that over the second third (the first one fills the data folder), and descriptors are at most 10 more.
 */
const config = { logRetentionSeconds: 150, idempotencyWindowSeconds: 150 };
const loadMs = { loadMsMin: 10_000, loadMsMax: 50_000 };
const growthMax = 1.2;
const descriptorsMore = 10;

interface Sample {
  /** Memory of the process's own; the store's map, which the kernel takes back as it likes, is not in it. */
  ownMebibytes: number;
  residentMebibytes: number;
  descriptors: number;
  folderMebibytes: number;
}

function sizeOf(path: string): number {
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.blocks * 512;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}

function sampleOf({ process: { pid }, report }: TestServer): Sample {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mebibytes = (field: string): number =>
    Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1_024;
  return {
    ownMebibytes: mebibytes('RssAnon'),
    residentMebibytes: mebibytes('VmRSS'),
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    folderMebibytes: sizeOf(report.data) / 1_024 ** 2,
  };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '60' }, shards: { type: 'string', default: '2' } },
});
const minutes = Number(values.minutes);
const shards = Number(values.shards);
if (!(minutes > 0) || !Number.isInteger(shards)) {
  console.error('npm run test:soak -- --minutes N [--shards N]');
  process.exit(2);
}

const seed = Date.now() % 1_000_000;
const random = new Random(seed);
const samples: Sample[] = [];
const storm = await Storm.start({
  shards,
  seed,
  config,
  ...loadMs,
  looksEachTime: true,
  beforeEnd: (server) => samples.push(sampleOf(server)),
});
const { findings } = storm;
const startedMs = performance.now();
const passedMinutes = (): number => (performance.now() - startedMs) / 60_000;
let printed = 0;
while (passedMinutes() < minutes) {
  await storm.round(random.next() < 0.3 ? 'regular end' : undefined);
  const sample = samples.at(-1);
  if (sample === undefined || passedMinutes() < printed + 1) continue;
  printed = Math.floor(passedMinutes());
  const { ownMebibytes, residentMebibytes, descriptors, folderMebibytes } = sample;
  console.log(
    `minute ${printed}: ${ownMebibytes.toFixed(0)} MiB of its own, ${residentMebibytes.toFixed(0)} MiB resident, ${descriptors} descriptors, data folder ${folderMebibytes.toFixed(1)} MiB, ${findings.sum('kill -9')} kills, ${findings.of('regular end')} regular ends, ${findings.of('refused with 503')} refused, ${findings.progress}`,
  );
}
await storm.finish();
findings.printAll();

const third = Math.floor(samples.length / 3);
let isFlat = third > 0;
for (const [figure, more] of [
  ['ownMebibytes', 0],
  ['descriptors', descriptorsMore],
  ['folderMebibytes', 0],
] as const) {
  const of = (some: readonly Sample[]): number => median(some.map((sample) => sample[figure]));
  const before = of(samples.slice(third, 2 * third));
  const after = of(samples.slice(-third));
  const holds = after <= (more > 0 ? before + more : before * growthMax);
  isFlat &&= holds;
  console.log(
    `${figure}: median ${before.toFixed(1)} over the second third, ${after.toFixed(1)} over the last: ${holds ? 'flat' : 'NOT FLAT'}`,
  );
}
if (!isFlat) process.exitCode = 1;
