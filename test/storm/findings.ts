/** Counts of a storm, and the violations that it found. */
export class Findings {
  readonly #counts = new Map<string, number>();
  readonly violations: string[] = [];

  count(what: string, by = 1): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + by);
  }

  of(what: string): number {
    return this.#counts.get(what) ?? 0;
  }

  /** The sum of all whose name begins so. */
  sum(prefix: string): number {
    let sum = 0;
    for (const [what, count] of this.#counts) if (what.startsWith(prefix)) sum += count;
    return sum;
  }

  violation(what: string): void {
    this.violations.push(what);
  }

  expect(holds: boolean, what: () => string): void {
    if (!holds) this.violation(what());
  }

  table(): string {
    const rows = [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1));
    return rows.map(([what, count]) => `${String(count).padStart(9)}  ${what}`).join('\n');
  }
}
