import type { Lane } from './lane.ts';

/**
 * Whose turn it is when a thread is free. Fleets take turns, and so do the actions of a fleet; and where several
 * fleets have actions, none has all threads at once, so that one whose actions compute as long as they may
 * leaves room for the others.
 */
export class LaneSchedule {
  readonly #threads: number;
  #running = 0;
  readonly #runningOfFleet = new Map<string, number>();
  /** When each fleet, and each action, had its last turn. */
  readonly #turns = new WeakMap<Lane, number>();
  readonly #fleetTurns = new Map<string, number>();
  #turn = 0;

  constructor(threads: number) {
    this.#threads = threads;
  }

  /** The lane that runs next; undefined where no thread is free or nothing is ready. */
  next(lanes: readonly Lane[]): Lane | undefined {
    if (this.#running >= this.#threads) return undefined;
    const isShared = lanes.some(({ action }) => action.fleetId !== lanes[0]?.action.fleetId);
    const fleetMax = isShared ? Math.max(1, this.#threads - 1) : this.#threads;
    const nowMs = performance.now();
    let chosen: Lane | undefined;
    for (const lane of lanes) {
      if ((this.#runningOfFleet.get(lane.action.fleetId) ?? 0) >= fleetMax) continue;
      if ((chosen === undefined || this.#isBefore(lane, chosen)) && lane.hasReady(nowMs)) chosen = lane;
    }
    return chosen;
  }

  begin(lane: Lane): void {
    const { fleetId } = lane.action;
    this.#turn += 1;
    this.#turns.set(lane, this.#turn);
    this.#fleetTurns.set(fleetId, this.#turn);
    this.#running += 1;
    this.#runningOfFleet.set(fleetId, (this.#runningOfFleet.get(fleetId) ?? 0) + 1);
  }

  end({ action: { fleetId } }: Lane): void {
    this.#running -= 1;
    const left = (this.#runningOfFleet.get(fleetId) ?? 1) - 1;
    if (left > 0) this.#runningOfFleet.set(fleetId, left);
    else this.#runningOfFleet.delete(fleetId);
  }

  #isBefore(lane: Lane, other: Lane): boolean {
    const fleets =
      (this.#fleetTurns.get(lane.action.fleetId) ?? 0) - (this.#fleetTurns.get(other.action.fleetId) ?? 0);
    if (fleets !== 0) return fleets < 0;
    return (this.#turns.get(lane) ?? 0) < (this.#turns.get(other) ?? 0);
  }
}
