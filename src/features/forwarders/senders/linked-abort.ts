/**
 * An abort signal that follows another one, with an optional timeout. Not `AbortSignal.any`: on Node 20 its signals
 * stay referenced by the followed one, which lives as long as the server, and there is one per batch.
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

  /** True if it timed out. */
  get isLate(): boolean {
    return this.#isLate;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#followed.removeEventListener('abort', this.#end);
    this.#end();
  }
}
