/** Indexes of the first two equal items of a list. */
type Duplicate = [first: number, second: number];

/**
 * Numbers the values of one body; equal values get the same (JSON Schema Core 2020-12, 4.2.2). Each value is visited
 * once, however many lists contain it.
 */
export class ValueNumbers {
  readonly #primitives = new Map<unknown, number>();
  /** Lists and objects, by the numbers of their parts. */
  readonly #composed = new Map<string, number>();
  readonly #known = new Map<object, number>();
  readonly #duplicates = new Map<readonly unknown[], Duplicate | undefined>();
  #last = 0;

  of(value: unknown): number {
    if (typeof value !== 'object' || value === null) return this.#numberOf(this.#primitives, value);
    const known = this.#known.get(value);
    if (known !== undefined) return known;
    const number = this.#numberOf(
      this.#composed,
      Array.isArray(value) ? this.#list(value) : this.#members(value),
    );
    this.#known.set(value, number);
    return number;
  }

  /** Comparing all pairs takes half a million comparisons for a thousand objects. */
  duplicateIn(items: readonly unknown[]): Duplicate | undefined {
    if (items.length < 2) return undefined;
    if (!this.#duplicates.has(items)) this.#duplicates.set(items, this.#findDuplicate(items));
    return this.#duplicates.get(items);
  }

  #findDuplicate(items: readonly unknown[]): Duplicate | undefined {
    const indexes = new Map<number, number>();
    for (const [index, item] of items.entries()) {
      const number = this.of(item);
      const before = indexes.get(number);
      if (before !== undefined) return [before, index];
      indexes.set(number, index);
    }
    return undefined;
  }

  #list(values: readonly unknown[]): string {
    return `[${values.map((value) => this.of(value)).join()}`;
  }

  /** Independent of the members' order. */
  #members(value: object): string {
    const members = Object.entries(value).map(([name, member]) => `${this.of(name)}:${this.of(member)}`);
    return `{${members.sort().join()}`;
  }

  #numberOf<K>(numbers: Map<K, number>, key: K): number {
    const known = numbers.get(key);
    if (known !== undefined) return known;
    this.#last += 1;
    numbers.set(key, this.#last);
    return this.#last;
  }
}
