/** How long a reader of events may take to fetch the mail that it was told of. */
const fetchMsMax = 15_000;

/**
 * Whether a mail may be announced. The SDKs fetch whenever they are told of mail, also while they have one in hand, and
 * fetching gives the same one until it is settled: told twice they would handle it twice.
 */
export class MailHand {
  #mail: string | undefined;
  #announcedAtMs: number | undefined;
  #isMissed = false;

  /** Whether to announce now; else it is made up for. */
  announce(): boolean {
    const isFetching =
      this.#announcedAtMs !== undefined && performance.now() < this.#announcedAtMs + fetchMsMax;
    this.#isMissed = this.#mail !== undefined || isFetching;
    if (!this.#isMissed) this.#announcedAtMs = performance.now();
    return !this.#isMissed;
  }

  /** A mail was fetched, or there was none. */
  fetched(mail: string | undefined): void {
    this.#mail = mail;
    this.#announcedAtMs = undefined;
  }

  settled(mail: string): void {
    if (mail === this.#mail) this.#mail = undefined;
  }

  /** Whether an announcement was held back that may be made now. Then it is made. */
  makeUp(): boolean {
    return this.#isMissed && this.announce();
  }

  /** Nobody listens any more, so nobody has a mail in hand. */
  reset(): void {
    [this.#mail, this.#announcedAtMs, this.#isMissed] = [undefined, undefined, false];
  }
}
