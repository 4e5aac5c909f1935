const shownMax = 20;

/** Violations found at the end of a run. */
export class CheckFindings {
  /** Answered, and not there. */
  lost = 0;
  /** There more often than it was sent. */
  doubled = 0;
  out_of_order = 0;
  /** There, and nobody has sent it. */
  unknown = 0;
  /** The first ones, in words. */
  readonly shown: string[] = [];

  note(kind: 'lost' | 'doubled' | 'out_of_order' | 'unknown', text: string): void {
    this[kind] += 1;
    if (this.shown.length < shownMax) this.shown.push(`${kind.replaceAll('_', ' ')}: ${text}`);
  }

  get isClean(): boolean {
    return this.lost + this.doubled + this.out_of_order + this.unknown === 0;
  }

  get counts(): Record<'lost' | 'doubled' | 'out_of_order' | 'unknown', number> {
    const { lost, doubled, out_of_order, unknown } = this;
    return { lost, doubled, out_of_order, unknown };
  }
}
