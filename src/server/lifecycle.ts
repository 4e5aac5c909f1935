type Stop = () => void | Promise<void>;

/** The parts of a server in start order: each may use those before it. */
export class Lifecycle {
  readonly #running: { name: string; stop: Stop }[] = [];

  /** Registers a running part. `stop` is called after those of all later parts. */
  start(name: string, stop: Stop): void {
    this.#running.push({ name, stop });
  }

  /** Name of the last part started, or the one being stopped. */
  get last(): string | undefined {
    return this.#running.at(-1)?.name;
  }

  /** Stops the parts in reverse. If one fails to stop, those before it keep running, because it may still use them. */
  async stop(): Promise<void> {
    for (let last = this.#running.at(-1); last !== undefined; last = this.#running.at(-1)) {
      await last.stop();
      this.#running.pop();
    }
  }
}
