import type { ActionFailures, ActionStatus, Run } from '../action-work.ts';
import type { Action } from '../declaration/action.ts';
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

type Counts = ActionStatus['attempts'];

const bucketMs = 10_000;
const buckets = 6;

/** Counts what happened in the last minute, in six buckets. */
class LastMinute {
  readonly #counts = new Float64Array(buckets);
  #bucket = 0;

  count(): void {
    this.#turn();
    this.#counts[this.#bucket % buckets] = (this.#counts[this.#bucket % buckets] ?? 0) + 1;
  }

  get total(): number {
    this.#turn();
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  #turn(): void {
    const now = Math.floor(performance.now() / bucketMs);
    for (let next = Math.max(this.#bucket + 1, now - buckets + 1); next <= now; next += 1) {
      this.#counts[next % buckets] = 0;
    }
    this.#bucket = now;
  }
}

/** Attempts at runs of each action since the server started, whatever was deployed or disabled meanwhile. */
export class AttemptCounts {
  readonly #ended = new Map<string, Counts>();
  readonly #begun = new Map<string, LastMinute>();

  /** Those that have ended, by outcome. */
  of({ id }: Action): Counts {
    return this.#ended.get(id) ?? { done: 0, failed: 0, dead: 0 };
  }

  begunInLastMinute({ id }: Action): number {
    return this.#begun.get(id)?.total ?? 0;
  }

  begin({ id }: Action): void {
    const begun = this.#begun.get(id) ?? new LastMinute();
    this.#begun.set(id, begun);
    begun.count();
  }

  end(action: Action, outcome: keyof Counts): void {
    const counts = this.of(action);
    this.#ended.set(action.id, { ...counts, [outcome]: counts[outcome] + 1 });
  }

  forget({ id }: Action): void {
    this.#ended.delete(id);
    this.#begun.delete(id);
  }
}
