import type { Result, Skipped } from './result.ts';

export interface BenchmarkOptions {
  rounds: number;
  /** Of each round of each subject. */
  seconds: number;
  /** The sizes that the goals name, of fleets above all: they take minutes to load. */
  full: boolean;
  /** Of actions: many of them in use at once, in place of one. */
  many: boolean;
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
  /** What this machine lacks for it and how to get it; undefined or absent when it can run. */
  missing?(): string | undefined;
  run(options: BenchmarkOptions): Promise<Omit<Result, 'benchmark'>[]>;
}
