import { backoffSeconds, putOffSeconds } from '../../client/pace.ts';

/** How long a reader of events may take to fetch the mail that it was told of. */
const fetchMsMax = 15_000;
const restSecondsMax = 60;

/**
 * Decides whether a mail may be announced. The SDKs fetch whenever they are told of mail, also while they have one in
 * hand, and fetching gives the same one until it is settled: told twice they would handle it twice.
 */
export class MailHand {
  readonly #rested: () => void;
  #mail: string | undefined;
  #announcedAtMs: number | undefined;
  #isMissed = false;
  #requeues = 0;
  #failures = 0;
  #rest: NodeJS.Timeout | undefined;

  /** rested: called after a rest, when an announcement that was held back may be made up for. */
  constructor(rested: () => void) {
    this.#rested = rested;
  }

  /** Returns whether to announce now; else the announcement counts as missed. */
  announce(): boolean {
    const isFetching =
      this.#announcedAtMs !== undefined && performance.now() < this.#announcedAtMs + fetchMsMax;
    this.#isMissed = this.#mail !== undefined || isFetching || this.#rest !== undefined;
    if (!this.#isMissed) this.#announcedAtMs = performance.now();
    return !this.#isMissed;
  }

  /** True if an announcement was held back. */
  get isMissed(): boolean {
    return this.#isMissed;
  }

  /** An announcement cannot be made now. */
  miss(): void {
    this.#isMissed = true;
  }

  /** A mail was fetched, or there was none. */
  fetched(mail: string | undefined): void {
    [this.#mail, this.#announcedAtMs, this.#failures] = [mail, undefined, 0];
  }

  /** A mail was settled. waiting: mails in the mailbox. Returns whether the program may fetch the next at once. */
  settled(mail: string, verb: string, waiting: number): boolean {
    this.#release(mail);
    this.#failures = 0;
    this.#requeues = verb === 'requeue' ? this.#requeues + 1 : 0;
    const seconds = this.#requeues === 0 ? 0 : putOffSeconds(this.#requeues, waiting, restSecondsMax);
    if (seconds > 0) this.#restFor(seconds);
    return waiting > 0 && seconds === 0;
  }

  /** Settling a mail has failed, or fetching one: the program was told, and asks no second time. */
  failed(mail: string | undefined): void {
    if (mail === undefined) this.#announcedAtMs = undefined;
    else this.#release(mail);
    this.#isMissed = true;
  }

  /** Announces nothing for so many seconds at least, and longer the more often it has failed. */
  rest(seconds: number): void {
    this.#restFor(seconds + backoffSeconds(this.#failures, restSecondsMax));
    this.#failures += 1;
  }

  #release(mail: string): void {
    if (mail === this.#mail) this.#mail = undefined;
  }

  #restFor(seconds: number): void {
    clearTimeout(this.#rest);
    this.#isMissed = true;
    this.#rest = setTimeout(() => {
      this.#rest = undefined;
      this.#rested();
    }, seconds * 1_000).unref();
  }

  /** Nobody listens any more, so nobody has a mail in hand. */
  reset(): void {
    clearTimeout(this.#rest);
    [this.#mail, this.#announcedAtMs, this.#isMissed, this.#rest] = [undefined, undefined, false, undefined];
  }
}
