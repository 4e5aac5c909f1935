import { Bench } from 'tinybench';
import type { Benchmark, BenchmarkOptions } from '../benchmark.ts';
import { median } from '../median.ts';
import type { Figures, Result } from '../result.ts';
import { credentials } from './credentials.ts';
import { crossing } from './crossing.ts';
import { idempotency } from './idempotency.ts';
import { keys } from './keys.ts';
import { mailbox } from './mailbox.ts';
import type { Microbench } from './microbench.ts';
import { placement } from './placement.ts';
import { replies } from './replies.ts';
import { request } from './request.ts';
import { schema } from './schema.ts';
import { values } from './values.ts';

const groups = [
  credentials,
  placement,
  keys,
  values,
  schema,
  request,
  replies,
  mailbox,
  idempotency,
  crossing,
];

/** There are some fifty of them: each gets this share of a round's time. */
const shareOfRound = 0.1;

export const micro: Benchmark = {
  name: 'micro',
  about:
    'Single parts of the server by themselves, on one thread but for the call to another thread. ' +
    'Routing is done by the HTTP library and cannot be called alone: what is measured of it is our pass over the headers.',
  async run(options) {
    const results: Omit<Result, 'benchmark'>[] = [];
    for (const open of groups) {
      await using group = await open();
      for (const bench of group.benches) results.push(await measure(bench, options));
    }
    return results;
  },
};

async function measure(bench: Microbench, options: BenchmarkOptions): Promise<Omit<Result, 'benchmark'>> {
  const { workload, conditions = {} } = bench;
  const batch = conditions.batch === undefined ? '' : ` at batch ${conditions.batch}`;
  options.progress(`${workload}${batch}`);
  const rounds: { nanoseconds: number; cpuMicroseconds: number }[] = [];
  for (let round = 0; round < options.rounds; round += 1) {
    rounds.push(await measureOnce(bench, options.seconds * 1_000 * shareOfRound));
  }
  const nanosecondsPerOperation = median(rounds.map(({ nanoseconds }) => nanoseconds));
  const figures: Figures = {
    operationsPerSecond: 1e9 / nanosecondsPerOperation,
    nanosecondsPerOperation,
    cpuMicrosecondsPerOperation: median(rounds.map(({ cpuMicroseconds }) => cpuMicroseconds)),
  };
  return { workload, subject: 'fleetpost', conditions, rounds: options.rounds, figures };
}

/** The median of one round's samples, and the CPU of all threads of this process by the number of operations. */
async function measureOnce(
  { workload, operations, isAsync, run, prepare }: Microbench,
  timeMs: number,
): Promise<{ nanoseconds: number; cpuMicroseconds: number }> {
  let cpuMicroseconds = 0;
  let before = process.cpuUsage();
  const bench = new Bench({
    time: timeMs,
    warmupTime: timeMs / 4,
    iterations: 5,
    warmupIterations: 5,
    throws: true,
  });
  bench.add(workload, run, {
    // Told, since to find out it would call `run` once without what `prepare` makes.
    async: isAsync,
    async beforeEach() {
      await prepare?.();
      before = process.cpuUsage();
    },
    afterEach(mode) {
      const { user, system } = process.cpuUsage(before);
      if (mode === 'run') cpuMicroseconds += user + system;
    },
  });
  const [task] = await bench.run();
  if (task?.result.state !== 'completed') throw new Error(`${workload} was not measured`);
  const { p50, samplesCount } = task.result.latency;
  return {
    nanoseconds: (p50 * 1e6) / operations,
    cpuMicroseconds: cpuMicroseconds / (samplesCount * operations),
  };
}
