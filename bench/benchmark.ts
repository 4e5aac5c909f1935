import type { Result, Skipped } from './result.ts';

/** Sizes of fleets and loads: 'short' is for whether a benchmark runs, not for its figures; 'full' is what the goals name. */
export type Size = 'short' | 'usual' | 'full';

export interface BenchmarkOptions {
  rounds: number;
  /** Duration of each round of each subject. */
  seconds: number;
  size: Size;
  /** Uses many actions at once in place of one. */
  many: boolean;
  /** A line of progress: what runs now. */
  progress(text: string): void;
  skip(skipped: Omit<Skipped, 'benchmark'>): void;
}

/** One entry of the suite. */
export interface Benchmark {
  /** The NAME of `npm run bench -- NAME`. */
  name: string;
  /** One sentence for the report: what it shows. */
  about: string;
  /** Names what this machine lacks for it and how to get it; undefined or absent when it can run. */
  missing?(): string | undefined;
  run(options: BenchmarkOptions): Promise<Omit<Result, 'benchmark'>[]>;
}
