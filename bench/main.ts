import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { Benchmark } from './benchmark.ts';
import { benchmarks } from './benchmarks.ts';
import { dataFilesystem, describeMachine } from './machine.ts';
import { ProgressLine } from './progress.ts';
import { terminalTable } from './report/terminal.ts';
import { writeReport } from './report/write.ts';
import type { Report, Result, Skipped } from './result.ts';

interface Flags {
  rounds: number;
  seconds: number;
  out: string;
  data?: string;
  short: boolean;
  full: boolean;
  many: boolean;
  list: boolean;
}

function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number from 1.');
}

const line = new ProgressLine();

const program = new Command('npm run bench --')
  .description('Measures Fleetpost beside what others would use.')
  .argument('[names...]', 'benchmarks to run; all of them when none is named')
  .option('--rounds <n>', 'rounds, of which the median counts', wholeNumber, 5)
  .option('--seconds <n>', 'length of each measurement', wholeNumber, 3)
  .addOption(
    new Option('--short', 'one round of a second, small fleets: whether it runs, not its figures')
      .default(false)
      .implies({ rounds: 1, seconds: 1 }),
  )
  .addOption(
    new Option('--full', 'with the largest fleets, which take minutes to load')
      .default(false)
      .conflicts('short'),
  )
  .option('--many', 'of actions: 8, 16 and 64 of them in use at once', false)
  .option('--out <dir>', 'where the report goes', 'bench-report')
  .option('--data <dir>', 'where data goes while it is measured: a disk, for fsync to be real')
  .option('--list', 'list the benchmarks', false)
  .action(run);

/** Names, and the first sentence of what each shows. */
function listOf(of: readonly Benchmark[]): string {
  const width = Math.max(...of.map(({ name }) => name.length));
  return of.map(({ name, about }) => `${name.padEnd(width)}  ${about.split('. ', 1)[0]}`).join('\n');
}

function chosen(names: readonly string[]): readonly Benchmark[] {
  const unknown = names.find((name) => !benchmarks.some((benchmark) => benchmark.name === name));
  if (unknown !== undefined)
    program.error(`There is no benchmark ${unknown}. There are:\n${listOf(benchmarks)}`);
  return names.length === 0 ? benchmarks : benchmarks.filter(({ name }) => names.includes(name));
}

async function run(names: readonly string[], flags: Flags): Promise<void> {
  const wanted = chosen(names);
  if (flags.list) {
    console.log(listOf(wanted));
    return;
  }
  if (flags.data !== undefined) {
    mkdirSync(flags.data, { recursive: true });
    // Every temporary folder is made where this says, here and in the processes that are started.
    process.env.TMPDIR = resolve(flags.data);
  }
  if (dataFilesystem().startsWith('tmpfs')) {
    console.error('Data would go to memory, where fsync costs nothing: name a folder on a disk with --data.');
  }
  const results: Result[] = [];
  const skipped: Skipped[] = [];
  const report: Report = {
    startedAt: new Date().toISOString(),
    machine: describeMachine(),
    benchmarks: wanted.map(({ name, about }) => ({ name, about })),
    results,
    skipped,
  };
  for (const benchmark of wanted) {
    await runOne(benchmark, flags, results, skipped);
    // After each, so that an interrupted run leaves what it has.
    writeReport(report, flags.out);
  }
  for (const { benchmark, subject, reason } of skipped) console.log(`${benchmark}, ${subject}: ${reason}`);
  console.log(`The report is in ${join(flags.out, 'report.txt')}.`);
}

/** A benchmark that fails is told of among the skipped, and ends the process with 1 when the others are done. */
async function runOne(
  { name, missing, run }: Benchmark,
  { rounds, seconds, short, full, many }: Flags,
  results: Result[],
  skipped: Skipped[],
): Promise<void> {
  const skip = (subject: string, reason: string): void => {
    skipped.push({ benchmark: name, subject, reason });
  };
  const lack = missing?.();
  if (lack !== undefined) {
    skip('all', lack);
    return;
  }
  try {
    const measured = await run({
      rounds,
      seconds,
      size: short ? 'short' : full ? 'full' : 'usual',
      many,
      progress: (text) => line.show(`${name}: ${text}`),
      skip: ({ subject, reason }) => skip(subject, reason),
    });
    const own = measured.map((result): Result => ({ benchmark: name, ...result }));
    results.push(...own);
    line.clear();
    if (own.length > 0) console.log(`\n${name}\n${terminalTable(own)}\n`);
  } catch (error) {
    line.clear();
    skip('all', `it failed: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    line.clear();
    console.error(`Stopped by ${signal} at: ${line.last}.`);
    process.exit(130);
  });
}
await program.parseAsync();
