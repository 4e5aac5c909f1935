import type { Conditions } from '../result.ts';

/** One thing of the server by itself, called as the server calls it. */
export interface Microbench {
  workload: string;
  conditions?: Conditions;
  /** How many of them one `run` does. */
  operations: number;
  isAsync: boolean;
  run(): unknown;
  /** Called before each run, not counted. */
  prepare?(): Promise<void>;
}

/** Benches that stand on the same ground. */
export interface Group extends AsyncDisposable {
  benches: readonly Microbench[];
}

/** Enough calls that reading the clock costs nothing beside them. */
const repetitions = 1_000;

/** A synchronous function; `operate` is given the number of its call, to choose its input by. */
export function repeated(workload: string, operate: (index: number) => unknown): Microbench {
  return {
    workload,
    operations: repetitions,
    isAsync: false,
    run: () => {
      let last: unknown;
      for (let index = 0; index < repetitions; index += 1) last = operate(index);
      return last;
    },
  };
}

/** `batch` calls at once, and the time until the last of them has settled. */
export function atOnce(
  workload: string,
  batch: number,
  operate: (index: number) => Promise<unknown>,
  prepare?: () => Promise<void>,
): Microbench {
  return {
    workload,
    conditions: { batch },
    operations: batch,
    isAsync: true,
    run: () => Promise.all(Array.from({ length: batch }, (_, index) => operate(index))),
    ...(prepare && { prepare }),
  };
}

/** A group that opens nothing. */
export function group(...benches: Microbench[]): Group {
  return { benches, [Symbol.asyncDispose]: async () => {} };
}
