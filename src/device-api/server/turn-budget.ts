/** Requests after which the end of the turn is scheduled: doing so at each request would cost more than some answers. */
const watchAfter = 256;
const answersMax = 512;

/**
 * Bounds the requests answered in one turn of the event loop. The library delivers everything that clients have
 * pipelined, up to 512 KiB from each ready socket, before anything else runs on this thread. Requests beyond the bound
 * are answered a turn later; the library closes a socket that has an answer due when its next request is parsed.
 */
export class TurnBudget {
  readonly #heartbeat: () => void;
  readonly #renew = (): void => {
    this.#requests = 0;
  };
  #requests = 0;
  readonly #forget = (): void => {
    this.#cutOff = undefined;
  };
  /** Address of a request that was cut off, and whose body has just ended. */
  #cutOff: string | undefined;

  /** `heartbeat` tells the event-loop watchdog that this thread makes progress, however long the turn. */
  constructor(heartbeat: () => void) {
    this.#heartbeat = heartbeat;
  }

  /** Counts a request; to be called for each. */
  count(): void {
    this.#heartbeat();
    this.#requests += 1;
    if (this.#requests === watchAfter) setImmediate(this.#renew);
  }

  /** Notes that the body of a request that was cut off has ended. */
  endCutOff(address: string): void {
    this.#cutOff = address;
    setImmediate(this.#forget);
  }

  /**
   * True if a request may be the next on the connection of one that was cut off, and come from its body: the library does
   * not tell connections apart, but parses all of a connection at once.
   */
  isBehindCutOff(request: { readonly address: string }): boolean {
    if (this.#cutOff === undefined) return false;
    const isBehind = this.#cutOff === request.address;
    this.#cutOff = undefined;
    return isBehind;
  }

  get isSpent(): boolean {
    return this.#requests > answersMax;
  }
}
