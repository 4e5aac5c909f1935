import type { HostCall } from './run.ts';

export interface Arrival {
  id: string;
  answer?: string;
  error?: string;
}

/** How many of a run's questions are with the server at once; the others wait for them. */
const underWayMax = 32;

/** The questions of one run, from the call in the sandbox until their answers are handed back into it. */
export class HostCalls {
  readonly #ask: (question: HostCall) => Promise<string>;
  readonly #waiting: { id: string; question: HostCall }[] = [];
  #arrived: Arrival[] = [];
  #numbered = 0;
  #underWay = 0;
  #wake: (() => void) | undefined;

  constructor(ask: (question: HostCall) => Promise<string>) {
    this.#ask = ask;
  }

  /** Those that the action has not had its answer to. */
  get open(): number {
    return this.#waiting.length + this.#underWay + this.#arrived.length;
  }

  add(question: HostCall): string {
    this.#numbered += 1;
    const id = String(this.#numbered);
    this.#waiting.push({ id, question });
    this.#askMore();
    return id;
  }

  /** The answers that are there, or else the first that comes; none if that takes too long. */
  async next(millisecondsMax: number): Promise<Arrival[]> {
    if (this.#arrived.length === 0) {
      const { promise, resolve } = withResolvers();
      this.#wake = resolve;
      const timer = setTimeout(resolve, millisecondsMax);
      await promise;
      clearTimeout(timer);
    }
    const arrived = this.#arrived;
    this.#arrived = [];
    return arrived;
  }

  #askMore(): void {
    while (this.#underWay < underWayMax) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#underWay += 1;
      this.#ask(next.question).then(
        (answer) => this.#arrive({ id: next.id, answer }),
        (error: unknown) => this.#arrive({ id: next.id, error: String(error) }),
      );
    }
  }

  #arrive(arrival: Arrival): void {
    this.#underWay -= 1;
    this.#arrived.push(arrival);
    this.#askMore();
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
