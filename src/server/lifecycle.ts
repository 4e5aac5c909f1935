type Stop = () => void | Promise<void>;

/** Bound of a whole stop. */
export interface StopLimit {
  secondsMax: number;
  /** Called with the part that is being stopped, or with undefined if something else keeps the process alive. */
  onLate(part: string | undefined): void;
}

/** The parts of a server in start order: each may use those before it. */
export class Lifecycle {
  readonly #running: { name: string; stop: Stop }[] = [];

  /** Registers a running part. `stop` is called after those of all later parts. */
  start(name: string, stop: Stop): void {
    this.#running.push({ name, stop });
  }

  /**
   * Stops the parts in reverse. If one fails to stop, those before it keep running, because it may still use them; so do
   * they if one is late, which leaves the caller to end the process.
   */
  async stop({ secondsMax, onLate }: StopLimit): Promise<void> {
    // Not cleared at the end: what keeps the process alive after it is late, too.
    setTimeout(() => onLate(this.#running.at(-1)?.name), secondsMax * 1_000).unref();
    for (let last = this.#running.at(-1); last !== undefined; last = this.#running.at(-1)) {
      await last.stop();
      this.#running.pop();
    }
  }
}
