/**
 * Whether an owner may take more of a limit that owners share: as long as it has less than is free. Alone it gets
 * half of the limit, n greedy ones get 1/(n+1) each, and whoever has nothing is never refused while there is any
 * room (dynamic thresholds with alpha 1: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory
 * packet switches", 1998). No share is configured, and none is idle because somebody might come.
 */
export function isWithinShare(max: number, used: number, usedByOwner: number, amount = 1): boolean {
  const free = max - used;
  return amount <= free && (usedByOwner === 0 || usedByOwner + amount <= free);
}

/** Counts who has how much of one limit, by `isWithinShare`. An owner that has nothing is not remembered. */
export class FairShare {
  /** May change while it is shared. */
  max: number;
  readonly #usedBy = new Map<string, number>();
  #used = 0;

  constructor(max: number) {
    this.max = max;
  }

  get used(): number {
    return this.#used;
  }

  usedBy(owner: string): number {
    return this.#usedBy.get(owner) ?? 0;
  }

  /** False, and nothing is counted, when there is no room at all or none for this owner. */
  take(owner: string, amount = 1): boolean {
    if (!isWithinShare(this.max, this.#used, this.usedBy(owner), amount)) return false;
    this.hold(owner, amount);
    return true;
  }

  /** What is there already, whether there is room for it or not. */
  hold(owner: string, amount = 1): void {
    this.#usedBy.set(owner, this.usedBy(owner) + amount);
    this.#used += amount;
  }

  /** Only of what was taken. */
  release(owner: string, amount = 1): void {
    const left = this.usedBy(owner) - amount;
    if (left === 0) this.#usedBy.delete(owner);
    else this.#usedBy.set(owner, left);
    this.#used -= amount;
  }
}
