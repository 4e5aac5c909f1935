/**
 * Texts of values; equal values, and only they, have the same (JSON Schema Core 2020-12, 4.2.2). Of a list or object it
 * is made once, however often it is asked for.
 */
export class EqualityTexts {
  readonly #known = new Map<object, string>();

  of(value: unknown): string {
    if (typeof value === 'string') return JSON.stringify(value);
    // Unlike JSON.stringify, String tells 1e999 from null.
    if (typeof value !== 'object' || value === null) return String(value);
    const known = this.#known.get(value);
    if (known !== undefined) return known;
    const text = Array.isArray(value) ? this.#list(value) : this.#members(value);
    this.#known.set(value, text);
    return text;
  }

  #list(values: readonly unknown[]): string {
    return `[${values.map((value) => this.of(value)).join()}]`;
  }

  /** Independent of the members' order. */
  #members(value: object): string {
    const members = Object.entries(value).map(
      ([name, member]) => `${JSON.stringify(name)}:${this.of(member)}`,
    );
    return `{${members.sort().join()}}`;
  }
}
