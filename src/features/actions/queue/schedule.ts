/** A source of work for threads: an action with its runs, or a fleet with its tests. */
export interface Claimant {
  readonly fleetId: string;
  /** True if it has something to start now. */
  hasReady(nowMs: number): boolean;
}

/**
 * Picks who gets a free thread. Fleets take turns, and so do the actions of a fleet. With claimants of several fleets,
 * no fleet gets all threads, so that actions that use all their CPU time leave room for others.
 */
export class ThreadSchedule {
  readonly #threads: number;
  #running = 0;
  readonly #runningOfFleet = new Map<string, number>();
  /** Number of the last turn of each action and of each fleet. */
  readonly #turns = new WeakMap<Claimant, number>();
  readonly #fleetTurns = new Map<string, number>();
  #turn = 0;

  constructor(threads: number) {
    this.#threads = threads;
  }

  /** The next claimant; undefined if no thread is free or nothing is ready. */
  next<T extends Claimant>(claimants: readonly T[]): T | undefined {
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

  #isBefore(claimant: Claimant, other: Claimant): boolean {
    const fleets = (this.#fleetTurns.get(claimant.fleetId) ?? 0) - (this.#fleetTurns.get(other.fleetId) ?? 0);
    if (fleets !== 0) return fleets < 0;
    return (this.#turns.get(claimant) ?? 0) < (this.#turns.get(other) ?? 0);
  }
}
