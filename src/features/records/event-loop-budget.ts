import { SingleFlight, yieldToEventLoop } from '../../core/async.ts';

/** Of one turn of the event loop, for all readers of logs together: this thread accepts connections too. */
const turnMsMax = 4;

/** Has all that read logs on this thread share a little of each turn of its event loop. */
export class EventLoopBudget {
  #sinceMs = Number.NEGATIVE_INFINITY;
  readonly #next = new SingleFlight(async () => {
    await yieldToEventLoop();
    this.#sinceMs = performance.now();
  });

  /** Settles, at once where there is time left, when the caller may read one page more. */
  async take(): Promise<void> {
    while (performance.now() - this.#sinceMs > turnMsMax) await this.#next.run();
  }
}
