import type { ActionFailures, Run } from '../service.ts';
import type { History } from './history.ts';

/** Attempts read at most each time an action is looked at. */
const attemptsReadMax = 1_000;

interface Tally extends ActionFailures {
  version: number;
  /** Number of the last attempt that was read. */
  upTo: number;
}

/** Tallies failed attempts of the versions that are deployed, from the retained runs: only those since the last look. */
export class FailureTallies {
  readonly #runs: History<Run>;
  readonly #tallies = new Map<string, Tally>();

  constructor(runs: History<Run>) {
    this.#runs = runs;
  }

  of(action: Buffer, version: number): ActionFailures {
    const id = action.toString('hex');
    const known = this.#tallies.get(id);
    const tally = known?.version === version ? known : { version, upTo: 0, last: undefined, sinceSuccess: 0 };
    this.#tallies.set(id, tally);
    const last = this.#runs.last(action);
    const from = Math.max(tally.upTo, last - attemptsReadMax);
    for (const run of this.#runs.all(action, from + 1)) {
      // Not beyond what was read: a number may be assigned whose run is not committed yet.
      tally.upTo = run.number;
      if (run.version !== version) continue;
      tally.sinceSuccess = run.error === undefined ? 0 : tally.sinceSuccess + 1;
      if (run.error !== undefined) tally.last = { error: run.error, atMs: run.endedAtMs };
    }
    return { last: tally.last, sinceSuccess: tally.sinceSuccess };
  }

  forget(action: Buffer): void {
    this.#tallies.delete(action.toString('hex'));
  }
}
