/**
 * True if an owner may take more of a shared limit: as long as its share stays within what is free. Alone it gets
 * half of the limit, n greedy owners get 1/(n+1) each, and an owner with nothing is refused only when nothing is free
 * (dynamic thresholds with alpha 1: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet
 * switches", 1998). No share is configured, and none is reserved for owners that may never come.
 */
export function isWithinShare(max: number, used: number, usedByOwner: number, amount = 1): boolean {
  const free = max - used;
  return amount <= free && (usedByOwner === 0 || usedByOwner + amount <= free);
}

/** Accounts for one limit by owner, by `isWithinShare`. Owners with nothing take no memory. */
export class FairShare {
  /** May be changed at any time. */
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

  hasRoomFor(owner: string, amount = 1): boolean {
    return isWithinShare(this.max, this.#used, this.usedBy(owner), amount);
  }

  /** Returns false, counting nothing, if nothing is free or the owner has its share. */
  take(owner: string, amount = 1): boolean {
    if (!this.hasRoomFor(owner, amount)) return false;
    this.hold(owner, amount);
    return true;
  }

  /** Counts usage that already exists, beyond the limit too. */
  hold(owner: string, amount = 1): void {
    this.#usedBy.set(owner, this.usedBy(owner) + amount);
    this.#used += amount;
  }

  /** Releases what was taken before. */
  release(owner: string, amount = 1): void {
    const left = this.usedBy(owner) - amount;
    if (left === 0) this.#usedBy.delete(owner);
    else this.#usedBy.set(owner, left);
    this.#used -= amount;
  }
}

/** Who has a part of what is shared twice: among groups, and by the members of each. */
export interface Party {
  group: string;
  member: string;
}

/** Accounts for one limit that groups share fairly, and the members of a group what it may have alone. */
export class PartyShare {
  readonly #max: number;
  readonly #groups: FairShare;
  readonly #members = new Map<string, FairShare>();

  constructor(max: number) {
    this.#max = max;
    this.#groups = new FairShare(max);
  }

  get used(): number {
    return this.#groups.used;
  }

  /** Returns false, counting nothing, if nothing is free or the member or its group has its share. */
  take({ group, member }: Party): boolean {
    const members = this.#members.get(group) ?? new FairShare(this.#max / 2);
    if (!members.take(member)) return false;
    if (!this.#groups.take(group)) {
      members.release(member);
      return false;
    }
    this.#members.set(group, members);
    return true;
  }

  /** Releases what was taken before. */
  release({ group, member }: Party): void {
    this.#groups.release(group);
    this.#members.get(group)?.release(member);
    if (this.#groups.usedBy(group) === 0) this.#members.delete(group);
  }
}
