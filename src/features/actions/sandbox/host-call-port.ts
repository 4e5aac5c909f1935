import type { HostCall } from './run.ts';

export interface HostCallResult {
  id: string;
  answer?: string;
  error?: string;
}

/** Maximum host calls of a run in flight; further ones wait for them. */
const underWayMax = 32;

/** The host calls of one run, from the call in the sandbox until its answer is handed back. */
export class HostCalls {
  readonly #send: (call: HostCall) => Promise<string>;
  readonly #waiting: { id: string; call: HostCall }[] = [];
  #results: HostCallResult[] = [];
  #lastId = 0;
  #underWay = 0;
  #wake: (() => void) | undefined;

  constructor(send: (call: HostCall) => Promise<string>) {
    this.#send = send;
  }

  /** Number of calls that the action has no answer to yet. */
  get open(): number {
    return this.#waiting.length + this.#underWay + this.#results.length;
  }

  add(call: HostCall): string {
    this.#lastId += 1;
    const id = String(this.#lastId);
    this.#waiting.push({ id, call });
    this.#sendMore();
    return id;
  }

  /** Returns the answers that have arrived, or else waits for the first; empty if that takes too long. */
  async next(millisecondsMax: number): Promise<HostCallResult[]> {
    if (this.#results.length === 0) {
      const { promise, resolve } = withResolvers();
      this.#wake = resolve;
      const timer = setTimeout(resolve, millisecondsMax);
      await promise;
      clearTimeout(timer);
    }
    const results = this.#results;
    this.#results = [];
    return results;
  }

  #sendMore(): void {
    while (this.#underWay < underWayMax) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#underWay += 1;
      this.#send(next.call).then(
        (answer) => this.#onResult({ id: next.id, answer }),
        (error: unknown) => this.#onResult({ id: next.id, error: String(error) }),
      );
    }
  }

  #onResult(result: HostCallResult): void {
    this.#underWay -= 1;
    this.#results.push(result);
    this.#sendMore();
    this.#wake?.();
  }
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
