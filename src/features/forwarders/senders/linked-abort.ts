/**
 * A signal that follows another one and can be given by itself, at once or after a time. By hand: those that
 * `AbortSignal.any` makes stay with a signal that lives as long as the server, on Node 20, and there is one for every
 * batch.
 */
export class LinkedAbort implements Disposable {
  readonly #controller = new AbortController();
  readonly #followed: AbortSignal;
  readonly #end = (): void => this.#controller.abort();
  #timer: NodeJS.Timeout | undefined;
  #isLate = false;

  constructor(followed: AbortSignal, afterMs?: number) {
    this.#followed = followed;
    if (followed.aborted) this.#end();
    else followed.addEventListener('abort', this.#end);
    if (afterMs === undefined) return;
    this.#timer = setTimeout(() => {
      this.#isLate = true;
      this.#end();
    }, afterMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether its time was up. */
  get isLate(): boolean {
    return this.#isLate;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#followed.removeEventListener('abort', this.#end);
    this.#end();
  }
}
