import { ApiError } from '../../../core/errors.ts';
import { FairShare } from '../../../core/fair-share.ts';
import type { Claimant, ThreadSchedule } from '../queue/schedule.ts';

/** Tests and compilations of one fleet that wait for a thread, in order. */
class FleetTests implements Claimant {
  readonly fleetId: string;
  readonly waiting: (() => void)[] = [];

  constructor(fleetId: string) {
    this.fleetId = fleetId;
  }

  hasReady(): boolean {
    return this.waiting.length > 0;
  }
}

/**
 * Tests and compilations of actions, which take turns with the runs of all fleets for threads. Operators wait for them,
 * so each fleet may have only its share of `max` under way.
 */
export class TestTurns {
  readonly #max: number;
  readonly #share: FairShare;
  readonly #schedule: ThreadSchedule;
  readonly #onChange: () => void;
  readonly #fleets = new Map<string, FleetTests>();
  #isClosed = false;

  /** `onChange`: called when a thread may be free, or something waits for one. */
  constructor(max: number, schedule: ThreadSchedule, onChange: () => void) {
    this.#max = max;
    this.#share = new FairShare(max);
    this.#schedule = schedule;
    this.#onChange = onChange;
  }

  /** Admits `work`, which uses `onThread`. @throws ApiError unavailable. */
  async admit<T>(fleetId: string, work: () => Promise<T>): Promise<T> {
    if (!this.#share.take(fleetId)) {
      const msg = `Too many tests and deployments of actions in this fleet: it has its share of ${this.#max} (actionTestsMax). Retry later.`;
      throw new ApiError('unavailable', { msg, retryAfterSeconds: 1 });
    }
    if (!this.#fleets.has(fleetId)) this.#fleets.set(fleetId, new FleetTests(fleetId));
    try {
      return await work();
    } finally {
      this.#share.release(fleetId);
      if (this.#share.usedBy(fleetId) === 0) this.#fleets.delete(fleetId);
    }
  }

  /** Runs `work` when it is its turn for a thread. */
  async onThread<T>(fleetId: string, work: () => Promise<T>): Promise<T> {
    const fleet = this.#fleets.get(fleetId);
    if (fleet === undefined) throw new Error('only what was admitted takes turns');
    const turn = new Promise<void>((start) => fleet.waiting.push(start));
    if (this.#isClosed) this.close();
    else this.#onChange();
    await turn;
    try {
      return await work();
    } finally {
      this.#schedule.end(fleet);
      this.#onChange();
    }
  }

  /** Starts the tests whose turn it is, and returns the next of the others. */
  next<T extends Claimant>(others: readonly T[]): T | undefined {
    for (;;) {
      const next = this.#schedule.next<T | FleetTests>([...others, ...this.#fleets.values()]);
      if (!(next instanceof FleetTests)) return next;
      this.#schedule.begin(next);
      next.waiting.shift()?.();
    }
  }

  /** Starts everything that waits, which then finds the threads closed. */
  close(): void {
    this.#isClosed = true;
    for (const { waiting } of this.#fleets.values()) for (const start of waiting.splice(0)) start();
  }
}
