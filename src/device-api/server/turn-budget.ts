/** After so many requests the turn is watched: to ask for its end at each request would cost more than some answers do. */
const watchAfter = 256;
const answersMax = 512;

/**
 * Bounds what one turn of the event loop answers at once. The library hands over all that clients have pipelined, up
 * to 512 KiB from each socket and from all that are ready, before anything else on this thread has its turn. What is
 * beyond the bound is answered a turn later, and a socket that has an answer due when its next request is parsed is
 * closed by the library.
 */
export class TurnBudget {
  readonly #beat: () => void;
  readonly #renew = (): void => {
    this.#requests = 0;
  };
  #requests = 0;

  /** `beat` tells whoever watches this thread that it goes on, however long the turn. */
  constructor(beat: () => void) {
    this.#beat = beat;
  }

  /** To be called at each request. */
  count(): void {
    this.#beat();
    this.#requests += 1;
    if (this.#requests === watchAfter) setImmediate(this.#renew);
  }

  get isSpent(): boolean {
    return this.#requests > answersMax;
  }
}
