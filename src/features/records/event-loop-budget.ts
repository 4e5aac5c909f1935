import { SingleFlight, yieldToEventLoop } from '../../core/async.ts';

/** Time per event loop turn for all log readers together: this thread accepts connections too. */
const turnMsMax = 4;

/** Lets all log readers of this thread share a few milliseconds of each event loop turn. */
export class EventLoopBudget {
  #sinceMs = Number.NEGATIVE_INFINITY;
  readonly #next = new SingleFlight(async () => {
    await yieldToEventLoop();
    this.#sinceMs = performance.now();
  });

  /** Settles when the caller may read one more page; at once while there is time left. */
  async take(): Promise<void> {
    while (performance.now() - this.#sinceMs > turnMsMax) await this.#next.run();
  }
}
