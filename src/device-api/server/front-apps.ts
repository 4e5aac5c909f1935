import type { App } from '../uws/uws.ts';
import type { FrontEnd } from './exchange.ts';

/** An app with one certificate, and what its exchanges share. */
export interface FrontApp {
  readonly app: App;
  readonly frontEnd: FrontEnd;
}

/** Apps with an earlier certificate whose connections live on; of one more, the oldest has to go. */
const earlierMax = 2;
/** Time that the connections of one that goes have to end by themselves: the library's idle timer has it too. */
const leaveMs = 15_000;

/**
 * The apps of a front end, oldest first: the last gets the new connections, those before it keep theirs for as
 * long as these last. One that has to go ends each connection with its next answer, and then closes what is
 * left: idle connections, and event streams, whose devices open them again.
 */
export class FrontApps {
  readonly #apps: FrontApp[] = [];
  #leaving: { one: FrontApp; closeAtMs: number } | undefined;

  add(one: FrontApp): void {
    this.#apps.push(one);
    if (this.#apps.length <= earlierMax + 1) return;
    // Two at once, so that what renewals hold is bounded however fast they come.
    this.#close();
    const oldest = this.#apps.shift() as FrontApp;
    oldest.frontEnd.isClosing = true;
    this.#leaving = { one: oldest, closeAtMs: performance.now() + leaveMs };
  }

  all(): readonly FrontApp[] {
    return this.#leaving === undefined ? this.#apps : [this.#leaving.one, ...this.#apps];
  }

  /** To be called every second. */
  closeLeft(nowMs: number): void {
    if (this.#leaving === undefined || nowMs < this.#leaving.closeAtMs) return;
    if (this.#leaving.one.frontEnd.pending.size === 0) this.#close();
  }

  #close(): void {
    this.#leaving?.one.app.close();
    this.#leaving = undefined;
  }
}
