/** Counts of a storm, and the violations that it found. */
export class Findings {
  readonly #counts = new Map<string, number>();
  /** Each once, however often it is seen. */
  readonly #violations = new Set<string>();
  #printed = 0;

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

  get violations(): string[] {
    return [...this.#violations];
  }

  violation(what: string): void {
    this.#violations.add(what);
  }

  /** Takes what the checks of the simulator find. */
  note(kind: string, text: string): void {
    this.violation(`${kind.replaceAll('_', ' ')}: ${text}`);
  }

  expect(holds: boolean, what: () => string): void {
    if (!holds) this.violation(what());
  }

  /** How it goes, for the line of a round. */
  get progress(): string {
    const answered = ['datapoint: answered', 'message: answered', 'mail: '].map((what) => this.sum(what));
    return `${answered.reduce((a, b) => a + b)} answered writes, ${this.#violations.size} violations`;
  }

  /** Prints the violations that it has not printed yet, but not endlessly many. */
  printViolations(max = 50): void {
    for (const one of this.violations.slice(this.#printed, this.#printed + max))
      console.log(`VIOLATION: ${one}`);
    this.#printed = this.#violations.size;
  }

  /** Prints all counts, and what is wrong; ends the process with 1 then. */
  printAll(): void {
    const rows = [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1));
    console.log(`\n${rows.map(([what, count]) => `${String(count).padStart(9)}  ${what}`).join('\n')}\n`);
    this.printViolations();
    const { size } = this.#violations;
    console.log(size === 0 ? 'Nothing was lost, doubled or made up.' : `${size} violations.`);
    if (size > 0) process.exitCode = 1;
  }
}
