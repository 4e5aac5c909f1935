import { unavailable } from '../../../core/errors.ts';
import { FairShare } from '../../../core/fair-share.ts';
import type { ThreadSchedule } from '../queue/schedule.ts';
import { AskerTurns } from './asker-turns.ts';

/**
 * Tests and deployments of actions, which take turns with the runs of all fleets for threads. Operators wait for them,
 * so each fleet may have only its share of `max` under way.
 */
export class TestTurns extends AskerTurns {
  readonly #max: number;
  readonly #share: FairShare;

  /** `onChange`: called when a thread may be free, or something waits for one. */
  constructor(max: number, schedule: ThreadSchedule, onChange: () => void) {
    super(schedule, onChange);
    this.#max = max;
    this.#share = new FairShare(max);
  }

  /** Admits `work`, which takes turns. @throws ApiError unavailable. */
  async admit<T>(fleetId: string, work: () => Promise<T>): Promise<T> {
    if (!this.#share.take(fleetId)) {
      throw unavailable(
        `Too many tests and deployments of actions in this fleet: it has its share of ${this.#max} (actionTestsMax). Retry later.`,
      );
    }
    try {
      return await work();
    } finally {
      this.#share.release(fleetId);
    }
  }
}
