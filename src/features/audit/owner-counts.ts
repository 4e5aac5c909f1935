/** How many of something each owner has, and who has most: each change in constant time, whatever their number. */
export class OwnerCounts {
  readonly #countOf = new Map<string, number>();
  /** By how many they have. */
  readonly #ownersOf = new Map<number, Set<string>>();
  #most = 0;
  #total = 0;

  get total(): number {
    return this.#total;
  }

  add(owner: string, amount = 1): void {
    this.#change(owner, amount);
  }

  /** Only of what was added. */
  remove(owner: string): void {
    this.#change(owner, -1);
  }

  /** One of those that have most; undefined where nobody has any. */
  most(): string | undefined {
    const [first] = this.#ownersOf.get(this.#most) ?? [];
    return first;
  }

  #change(owner: string, by: number): void {
    const before = this.#countOf.get(owner) ?? 0;
    const count = before + by;
    this.#total += by;
    const peers = this.#ownersOf.get(before);
    if (peers?.delete(owner) && peers.size === 0) this.#ownersOf.delete(before);
    if (count === 0) this.#countOf.delete(owner);
    else {
      this.#countOf.set(owner, count);
      const others = this.#ownersOf.get(count) ?? new Set<string>();
      this.#ownersOf.set(count, others.add(owner));
    }
    // One fewer of the last that had most: now that owner has most, with whoever has as many.
    if (count > this.#most || (before === this.#most && !this.#ownersOf.has(before))) this.#most = count;
  }
}
