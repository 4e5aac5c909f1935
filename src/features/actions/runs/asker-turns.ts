import { ApiError } from '../../../core/errors.ts';
import type { Claimant, ThreadSchedule } from '../queue/schedule.ts';

/** Who asked for a test, a check or a deployment: the bearer of a token. */
export interface Asker {
  /** Id of the token, or of a session. */
  token: string;
  name: string;
}

/** Its work that waits, in order. */
interface Waiting {
  /** Key of the work that a newer one with the same key replaces. */
  subject: string | undefined;
  start(): void;
  replace(): void;
}

/** Work that one token of a fleet has asked for. */
class AskedWork implements Claimant {
  readonly fleetId: string;
  readonly waiting: Waiting[] = [];
  underWay = 0;

  constructor(fleetId: string) {
    this.fleetId = fleetId;
  }

  hasReady(): boolean {
    return this.waiting.length > 0;
  }
}

/**
 * Turns of what operators have asked for: fleets take turns, and so do the tokens of a fleet. Unbounded: callers limit
 * how much waits.
 */
export class AskerTurns {
  readonly #schedule: ThreadSchedule;
  readonly #onChange: () => void;
  readonly #askers = new Map<string, AskedWork>();
  #isClosed = false;

  /** `onChange`: called when a turn may have come; it calls `next`. */
  constructor(schedule: ThreadSchedule, onChange: () => void) {
    this.#schedule = schedule;
    this.#onChange = onChange;
  }

  /**
   * Runs `work` when its turn comes. With a `subject` it takes the place of older work of the same token on the same
   * subject that still waits.
   * @throws ApiError replaced if newer work has taken its place.
   */
  async take<T>(
    fleetId: string,
    { token }: Pick<Asker, 'token'>,
    work: () => Promise<T>,
    subject?: string,
  ): Promise<T> {
    const key = `${fleetId} ${token}`;
    const asker = this.#askers.get(key) ?? new AskedWork(fleetId);
    this.#askers.set(key, asker);
    const older = asker.waiting.findIndex((one) => subject !== undefined && one.subject === subject);
    const turn = new Promise<void>((start, reject) => {
      const waiting: Waiting = { subject, start, replace: () => reject(new ApiError('replaced')) };
      if (older === -1) asker.waiting.push(waiting);
      else asker.waiting.splice(older, 1, waiting)[0]?.replace();
    });
    if (this.#isClosed) this.close();
    else this.#onChange();
    await turn;
    try {
      return await work();
    } finally {
      this.#schedule.end(asker);
      asker.underWay -= 1;
      if (asker.underWay === 0 && asker.waiting.length === 0) this.#askers.delete(key);
      this.#onChange();
    }
  }

  /** Starts what has its turn, and returns the next of the others. */
  next<T extends Claimant>(others: readonly T[]): T | undefined {
    for (;;) {
      const next = this.#schedule.next<T | AskedWork>([...others, ...this.#askers.values()]);
      if (!(next instanceof AskedWork)) return next;
      this.#start(next);
    }
  }

  /** Starts everything that waits, which then finds its threads closed. */
  close(): void {
    this.#isClosed = true;
    for (const asker of [...this.#askers.values()]) while (asker.hasReady()) this.#start(asker);
  }

  #start(asker: AskedWork): void {
    this.#schedule.begin(asker);
    asker.underWay += 1;
    asker.waiting.shift()?.start();
  }
}
