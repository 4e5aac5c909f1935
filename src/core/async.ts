import { setTimeout as elapse, setImmediate as nextTurn } from 'node:timers/promises';

/** Settles after that time, or with the signal: it never throws, so whoever goes on must look at the signal. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (ms <= 0) return;
  await elapse(ms, undefined, { signal }).catch(() => {});
}

/** Settles in a later turn of the event loop: what has come in meanwhile, from sockets too, is served before. */
export function yieldToEventLoop(): Promise<void> {
  return nextTurn();
}

/** Tasks one after another, in the order of `run`. Who calls it bounds how many of them wait. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  /** Has the task's own outcome. It begins once all before it have ended, well or not. */
  run<T>(task: () => Promise<T>): Promise<T> {
    const next = (): Promise<T> => task();
    const result = this.#last.then(next, next);
    this.#last = result;
    return result;
  }

  /** When all that were begun before have ended, well or not. */
  async settled(): Promise<void> {
    await this.#last.catch(() => {});
  }
}

/** A mutex for each key: tasks of different keys run side by side, and a key without a task is not remembered. */
export class KeyedMutex<K> {
  readonly #last = new Map<K, Promise<unknown>>();

  async run<T>(key: K, task: () => Promise<T>): Promise<T> {
    const next = (): Promise<T> => task();
    const result = (this.#last.get(key) ?? Promise.resolve()).then(next, next);
    this.#last.set(key, result);
    try {
      return await result;
    } finally {
      if (this.#last.get(key) === result) this.#last.delete(key);
    }
  }
}

/**
 * A task that runs once at a time, and begins within the call of `run`. Who asks while it is under way gets the outcome
 * of that run, a failure too; the next one begins anew, so it is no cache. It does not look again for who asked late: a
 * task that goes through what waits does so until nothing does.
 */
export class SingleFlight<T = void> {
  readonly #task: () => Promise<T>;
  #underWay: Promise<T> | undefined;

  constructor(task: () => Promise<T>) {
    this.#task = task;
  }

  run(): Promise<T> {
    this.#underWay ??= this.#task().finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  /** When none is under way any more; whoever ran it has its outcome. */
  async settled(): Promise<void> {
    await this.#underWay?.catch(() => {});
  }
}

/** A single flight for each key, with the task that its first caller gives. */
export class KeyedSingleFlight<K, T> {
  readonly #underWay = new Map<K, Promise<T>>();

  run(key: K, task: () => Promise<T>): Promise<T> {
    const known = this.#underWay.get(key);
    if (known !== undefined) return known;
    const run = task().finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, run);
    return run;
  }
}

/** Those who wait for what somebody else says, in the order in which they came. */
export class Condition {
  readonly #waiting = new Map<() => void, () => boolean>();

  get size(): number {
    return this.#waiting.size;
  }

  /** Settles when it is woken; with the signal, or after `msMax`. It waits from the call on. `when` is for `wakeOne`. */
  async wait(
    signal: AbortSignal,
    { msMax, when = () => true }: { msMax?: number; when?: () => boolean } = {},
  ): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = msMax === undefined ? undefined : setTimeout(wake, msMax);
      signal.addEventListener('abort', wake);
      this.#waiting.set(wake, when);
    });
  }

  /** Whoever has waited longest of those who may be woken. */
  wakeOne(): void {
    for (const [wake, when] of this.#waiting) {
      if (!when()) continue;
      wake();
      return;
    }
  }

  /** Whoever may be woken or not. */
  wakeAll(): void {
    for (const wake of [...this.#waiting.keys()]) wake();
  }
}

interface Waiting<I, O> {
  item: I;
  untilMs: number;
  resolve(outcome: O): void;
  reject(error: unknown): void;
}

export interface BatcherOptions<I, O> {
  /** One batch: answers an outcome for each item, in their order, or none where none is wanted. What it throws all get. */
  run(items: readonly I[]): Promise<readonly O[]>;
  /** Has an idle one begin: what is added until it does goes together. */
  begin(go: () => void): void;
  /** Batches at once; what is added while there are so many shares the next one. */
  underWayMax: number;
  /** Of one batch. */
  itemsMax: number;
  /** Of one batch, but for its first item. */
  bytes?: { of(item: I): number; max: number } | undefined;
  /** Of what waits; without it the callers are its bound. */
  waiting?: {
    /** With so many, more are refused at once. */
    itemsMax: number;
    /** What has waited for longer when it could go is refused. */
    msMax: number;
    refusal(reason: 'full' | 'late'): Error;
  };
}

/**
 * Batches of what is asked for one by one, where a batch costs about as much as one item: a lone item goes at once, and
 * while all batches are under way those that come are gathered, so that they grow with the load.
 */
export class Batcher<I, O> {
  readonly #options: BatcherOptions<I, O>;
  #waiting: Waiting<I, O>[] = [];
  #underWay = 0;
  readonly #onIdle: (() => void)[] = [];

  constructor(options: BatcherOptions<I, O>) {
    this.#options = options;
  }

  get isIdle(): boolean {
    return this.#underWay === 0 && this.#waiting.length === 0;
  }

  /** Has the item's own outcome. @throws what its batch threw, or the refusal. */
  add(item: I): Promise<O> {
    const { waiting, begin, underWayMax } = this.#options;
    if (waiting !== undefined && this.#waiting.length >= waiting.itemsMax) {
      return Promise.reject(waiting.refusal('full'));
    }
    const untilMs = waiting === undefined ? 0 : performance.now() + waiting.msMax;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, untilMs, resolve, reject });
      if (this.#waiting.length === 1 && this.#underWay < underWayMax) begin(() => void this.#go());
    });
  }

  /** When nothing waits or is under way, also of what is added meanwhile. */
  async drained(): Promise<void> {
    if (!this.isIdle) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  async #go(): Promise<void> {
    const { run, underWayMax } = this.#options;
    if (this.#underWay >= underWayMax) return;
    this.#underWay += 1;
    while (this.#waiting.length > 0) {
      this.#refuseLate();
      const batch = this.#waiting.splice(0, this.#nextSize());
      if (batch.length === 0) break;
      try {
        const outcomes = await run(batch.map(({ item }) => item));
        for (const [index, { resolve }] of batch.entries()) resolve(outcomes[index] as O);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#underWay -= 1;
    if (this.isIdle) while (this.#onIdle.length > 0) this.#onIdle.pop()?.();
  }

  #refuseLate(): void {
    const { waiting } = this.#options;
    if (waiting === undefined) return;
    const nowMs = performance.now();
    const end = this.#waiting.findIndex(({ untilMs }) => untilMs > nowMs);
    const late = this.#waiting.splice(0, end < 0 ? this.#waiting.length : end);
    for (const { reject } of late) reject(waiting.refusal('late'));
  }

  #nextSize(): number {
    const { itemsMax, bytes } = this.#options;
    if (bytes === undefined) return itemsMax;
    let sum = 0;
    const beyond = this.#waiting.findIndex(({ item }, index) => {
      sum += bytes.of(item);
      return index > 0 && sum > bytes.max;
    });
    return beyond === -1 ? itemsMax : Math.min(beyond, itemsMax);
  }
}
