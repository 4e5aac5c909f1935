type Stop = () => void | Promise<void>;

/** The parts of a server, in the order in which they were started: each may use those before it. */
export class Lifecycle {
  readonly #running: { name: string; stop: Stop }[] = [];

  /** The part runs now, and `stop` ends it, behind all that are started after it. */
  start(name: string, stop: Stop): void {
    this.#running.push({ name, stop });
  }

  /** The name of the part that was started last, or is being stopped. */
  get last(): string | undefined {
    return this.#running.at(-1)?.name;
  }

  /** In reverse. Where one cannot be stopped, those before it go on: it may still be using them. */
  async stop(): Promise<void> {
    for (let last = this.#running.at(-1); last !== undefined; last = this.#running.at(-1)) {
      await last.stop();
      this.#running.pop();
    }
  }
}
