import { ApiError } from '../../../core/errors.ts';

/** A source of work for threads: an action with its runs, or a fleet with its tests. */
export interface Claimant {
  readonly fleetId: string;
  /** True if it has something to start now. */
  hasReady(nowMs: number): boolean;
}

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
 * Picks who gets a free thread. Fleets take turns, and so do the actions of a fleet. With claimants of several fleets,
 * no fleet gets all threads, so that actions that use all their CPU time leave room for others. What
 * operators ask for has its turns among them, each token of a fleet by itself; callers limit how much of it waits.
 */
export class ThreadSchedule {
  readonly #threads: number;
  readonly #onChange: () => void;
  readonly #asked = new Map<string, AskedWork>();
  #isClosed = false;
  #running = 0;
  readonly #runningOfFleet = new Map<string, number>();
  /** Number of the last turn of each action and of each fleet. */
  readonly #turns = new WeakMap<Claimant, number>();
  readonly #fleetTurns = new Map<string, number>();
  #turn = 0;

  /** `onChange`: called when a thread may be free, or something waits for one; it calls `next`. */
  constructor(threads: number, onChange: () => void) {
    this.#threads = threads;
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
    const asker = this.#asked.get(key) ?? new AskedWork(fleetId);
    this.#asked.set(key, asker);
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
      this.end(asker);
      asker.underWay -= 1;
      if (asker.underWay === 0 && asker.waiting.length === 0) this.#asked.delete(key);
      this.#onChange();
    }
  }

  /** Starts asked work that has its turn, and returns the next claimant; undefined if no thread is free or nothing is ready. */
  next<T extends Claimant>(claimants: readonly T[]): T | undefined {
    for (;;) {
      const next = this.#first<T | AskedWork>([...claimants, ...this.#asked.values()]);
      if (!(next instanceof AskedWork)) return next;
      this.#start(next);
    }
  }

  begin(claimant: Claimant): void {
    const { fleetId } = claimant;
    this.#turn += 1;
    this.#turns.set(claimant, this.#turn);
    this.#fleetTurns.set(fleetId, this.#turn);
    this.#running += 1;
    this.#runningOfFleet.set(fleetId, (this.#runningOfFleet.get(fleetId) ?? 0) + 1);
  }

  end({ fleetId }: Claimant): void {
    this.#running -= 1;
    const left = (this.#runningOfFleet.get(fleetId) ?? 1) - 1;
    if (left > 0) this.#runningOfFleet.set(fleetId, left);
    else this.#runningOfFleet.delete(fleetId);
  }

  /** Starts everything that waits, which then finds its threads closed. */
  close(): void {
    this.#isClosed = true;
    for (const asker of [...this.#asked.values()]) while (asker.hasReady()) this.#start(asker);
  }

  #start(asker: AskedWork): void {
    this.begin(asker);
    asker.underWay += 1;
    asker.waiting.shift()?.start();
  }

  #first<T extends Claimant>(claimants: readonly T[]): T | undefined {
    if (this.#running >= this.#threads) return undefined;
    const isShared = claimants.some(({ fleetId }) => fleetId !== claimants[0]?.fleetId);
    const fleetMax = isShared ? Math.max(1, this.#threads - 1) : this.#threads;
    const nowMs = performance.now();
    let chosen: T | undefined;
    for (const claimant of claimants) {
      if ((this.#runningOfFleet.get(claimant.fleetId) ?? 0) >= fleetMax) continue;
      if ((chosen === undefined || this.#isBefore(claimant, chosen)) && claimant.hasReady(nowMs)) {
        chosen = claimant;
      }
    }
    return chosen;
  }

  #isBefore(claimant: Claimant, other: Claimant): boolean {
    const fleets = (this.#fleetTurns.get(claimant.fleetId) ?? 0) - (this.#fleetTurns.get(other.fleetId) ?? 0);
    if (fleets !== 0) return fleets < 0;
    return (this.#turns.get(claimant) ?? 0) < (this.#turns.get(other) ?? 0);
  }
}
