import { ApiError } from '../../../core/errors.ts';
import { FairShare } from '../../../core/fair-share.ts';
import type { Claimant, ThreadSchedule } from '../queue/schedule.ts';

/** What the operators of one fleet try waits here for threads, in its order. */
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
 * Tests and compilations of actions, which take turns for threads with the runs of all fleets. They are requests of
 * operators, who wait: of each fleet there are as many as its share of `max`.
 */
export class TestTurns {
  readonly #max: number;
  readonly #share: FairShare;
  readonly #schedule: ThreadSchedule;
  readonly #onChange: () => void;
  readonly #fleets = new Map<string, FleetTests>();
  #isClosed = false;

  /** `onChange`: a thread may have become free, or something waits for one. */
  constructor(max: number, schedule: ThreadSchedule, onChange: () => void) {
    this.#max = max;
    this.#share = new FairShare(max);
    this.#schedule = schedule;
    this.#onChange = onChange;
  }

  /** `work` uses `onThread`. @throws ApiError unavailable. */
  async admit<T>(fleetId: string, work: () => Promise<T>): Promise<T> {
    if (!this.#share.take(fleetId)) {
      const msg = `This fleet has its share of the ${this.#max} tests and deployments of actions that may be under way (actionTestsMax).`;
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

  /** Has `work` take a thread when it is its turn. */
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

  /** Who of the others is next for a thread, once every test has begun that comes before. */
  next<T extends Claimant>(others: readonly T[]): T | undefined {
    for (;;) {
      const next = this.#schedule.next<T | FleetTests>([...others, ...this.#fleets.values()]);
      if (!(next instanceof FleetTests)) return next;
      this.#schedule.begin(next);
      next.waiting.shift()?.();
    }
  }

  /** Nobody waits any more: what has no thread by now finds them closed. */
  close(): void {
    this.#isClosed = true;
    for (const { waiting } of this.#fleets.values()) for (const start of waiting.splice(0)) start();
  }
}
