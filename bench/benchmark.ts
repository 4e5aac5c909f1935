import type { Result, Skipped } from './result.ts';

export interface BenchmarkOptions {
  rounds: number;
  /** Of each round of each subject. */
  seconds: number;
  /** A line of progress: what runs now. */
  progress(text: string): void;
  skip(skipped: Omit<Skipped, 'benchmark'>): void;
}

/** One entry of the suite. */
export interface Benchmark {
  /** As `npm run bench -- NAME` takes it. */
  name: string;
  /** One sentence for the report: what it shows. */
  about: string;
  run(options: BenchmarkOptions): Promise<Omit<Result, 'benchmark'>[]>;
}
