import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { benchmarks } from '../../bench/benchmarks.ts';
import { removeFolder, temporaryFolder } from '../../bench/servers/temporary-folder.ts';
import { killTree } from '../harness/machine/process-tree.ts';
import { type Outcome, outcomeOf } from './outcome.ts';

/**
 * `npm run test:bench`: every benchmark in its shortest form, one after the other, each in a process of its own that has
 * its time. What counts is that it ends well and gives figures, not how large they are. `-- NAME…` runs some of them.
 */
const root = new URL('../..', import.meta.url).pathname;
const secondsMax = 180;
/** Time from SIGTERM until what still runs is killed. */
const stopSeconds = 10;
const logName = 'log';
const linesShown = 20;

/** `--many` makes another workload of it. */
const forms = benchmarks.flatMap(({ name }) => (name === 'actions' ? [name, `${name} --many`] : [name]));

function chosen(names: readonly string[]): readonly string[] {
  const unknown = names.find((name) => !forms.includes(name));
  if (unknown === undefined) return names.length === 0 ? forms : forms.filter((form) => names.includes(form));
  console.error(`There is no benchmark ${unknown}. There are: ${forms.join(', ')}.`);
  process.exit(2);
}

let running: ChildProcess | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    running?.kill('SIGTERM');
    process.exit(130);
  });
}

/** Ends it when its time is over: by SIGTERM, for it to end the servers that it started. */
async function ended(child: ChildProcess): Promise<{ exitCode: number | null; isLate: boolean }> {
  let isLate = false;
  const timers = [
    setTimeout(() => {
      isLate = true;
      child.kill('SIGTERM');
    }, secondsMax * 1_000),
    setTimeout(() => killTree(child.pid ?? Number.NaN), (secondsMax + stopSeconds) * 1_000),
  ];
  const [exitCode] = (await once(child, 'exit')) as [number | null];
  for (const timer of timers) clearTimeout(timer);
  return { exitCode, isLate };
}

async function runOne(form: string, folder: string): Promise<Outcome> {
  const log = openSync(join(folder, logName), 'w');
  const args = ['--import', './bench/plain-typescript.mjs', 'bench/main.ts', ...form.split(' '), '--short'];
  running = spawn(process.execPath, [...args, '--out', folder], { cwd: root, stdio: ['ignore', log, log] });
  const { exitCode, isLate } = await ended(running);
  running = undefined;
  closeSync(log);
  const file = join(folder, 'results.json');
  const report = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
  return isLate
    ? { state: 'failed', reason: `it had not ended after ${secondsMax} s` }
    : outcomeOf({ exitCode, report });
}

function endOf(logFile: string): string {
  return readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-linesShown).join('\n');
}

/** Words for the end of one of them. */
function lineOf(outcome: Outcome): string {
  if (outcome.state !== 'passed') return `${outcome.state}: ${outcome.reason}`;
  const without = outcome.without.map((one) => `; not measured: ${one}`);
  return `${outcome.figures} figures${without.join('')}`;
}

const wanted = chosen(process.argv.slice(2));
const outcomes = new Map<string, Outcome>();
const startMs = performance.now();
for (const [index, form] of wanted.entries()) {
  const folder = temporaryFolder();
  const formStartMs = performance.now();
  process.stdout.write(`${index + 1} of ${wanted.length}, ${form}`);
  try {
    const outcome = await runOne(form, folder);
    outcomes.set(form, outcome);
    const seconds = ((performance.now() - formStartMs) / 1_000).toFixed(0);
    console.log(`, ${seconds} s: ${lineOf(outcome)}`);
    if (outcome.state === 'failed') console.log(endOf(join(folder, logName)));
  } finally {
    removeFolder(folder);
  }
}

const namesOf = (has: (outcome: Outcome) => boolean): string =>
  [...outcomes].flatMap(([form, outcome]) => (has(outcome) ? [form] : [])).join(', ');
const isFailed = ({ state }: Outcome): boolean => state === 'failed';
const passed = [...outcomes.values()].filter(({ state }) => state === 'passed').length;
console.log(
  `${passed} of ${wanted.length} passed in ${((performance.now() - startMs) / 1_000).toFixed(0)} s.`,
);
for (const [title, names] of [
  ['Of these in part', namesOf((outcome) => outcome.state === 'passed' && outcome.without.length > 0)],
  ['Not run', namesOf(({ state }) => state === 'not run')],
  ['Failed', namesOf(isFailed)],
]) {
  if (names !== '') console.log(`${title}: ${names}.`);
}
process.exitCode = [...outcomes.values()].some(isFailed) ? 1 : 0;
