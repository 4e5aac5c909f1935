import { setTimeout as elapse, setImmediate as nextTurn } from 'node:timers/promises';

/** Settles after the time or on abort. Never throws: the caller must check the signal. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (ms <= 0) return;
  await elapse(ms, undefined, { signal }).catch(() => {});
}

/** Waits for a promise, but no longer than this; returns whether it settled. @throws what the promise throws in time. */
export async function settlesWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const ended = new AbortController();
  try {
    return await Promise.race([promise.then(() => true), sleep(ms, ended.signal).then(() => false)]);
  } finally {
    ended.abort();
  }
}

/** Settles in a later turn of the event loop, after what has arrived meanwhile, socket I/O included. */
export function yieldToEventLoop(): Promise<void> {
  return nextTurn();
}

/** Runs tasks one at a time, in the order of `run`. Unbounded: callers limit how many wait. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  /** Settles with the task's own outcome. The task starts once all before it have settled. */
  run<T>(task: () => Promise<T>): Promise<T> {
    const next = (): Promise<T> => task();
    const result = this.#last.then(next, next);
    this.#last = result;
    return result;
  }

  /** Settles once all tasks started so far have settled; never throws. */
  async settled(): Promise<void> {
    await this.#last.catch(() => {});
  }
}

/** One mutex per key: tasks of different keys run concurrently, and idle keys take no memory. */
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
 * Runs a task at most once at a time, starting synchronously in `run`. Callers during a run share its outcome,
 * failures included; the next call starts anew, so it is no cache. A late caller does not cause another run: a task
 * that drains a queue must itself loop until the queue is empty, and say by `isLeft` what came after its last look,
 * for it has not ended before some microtasks later.
 */
export class SingleFlight<T = void> {
  readonly #task: () => Promise<T>;
  readonly #isLeft: () => boolean;
  #underWay: Promise<T> | undefined;

  constructor(task: () => Promise<T>, isLeft = () => false) {
    this.#task = task;
    this.#isLeft = isLeft;
  }

  run(): Promise<T> {
    this.#underWay ??= this.#run();
    return this.#underWay;
  }

  async #run(): Promise<T> {
    try {
      let outcome = await this.#task();
      while (this.#isLeft()) outcome = await this.#task();
      return outcome;
    } finally {
      // In the turn of that look: whoever calls later starts anew.
      this.#underWay = undefined;
    }
  }

  /** Settles once no run is active; never throws, since callers of `run` have the outcome. */
  async settled(): Promise<void> {
    await this.#underWay?.catch(() => {});
  }
}

/** One single flight per key, running the task of its first caller. */
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

/** Waiters for a condition, in order of arrival. */
export class Condition {
  readonly #waiting = new Map<() => void, () => boolean>();

  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Settles when woken, on abort, or after `msMax`. Waits from the call on. `wakeOne` skips it while `when` is false.
   */
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

  /** Wakes the longest waiter whose `when` holds. */
  wakeOne(): void {
    for (const [wake, when] of this.#waiting) {
      if (!when()) continue;
      wake();
      return;
    }
  }

  /** Wakes all waiters, whatever their `when`. */
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
  /**
   * Runs one batch: returns an outcome per item, in order, or none if callers need none. An error rejects all items.
   */
  run(items: readonly I[]): Promise<readonly O[]>;
  /** Schedules the start of an idle batcher: items added until then share the first batch. */
  begin(go: () => void): void;
  /** Concurrent batches; items added while all are running share the next one. */
  underWayMax: number;
  /** Items per batch. */
  itemsMax: number;
  /** Bytes per batch; a single larger item still goes alone. */
  bytes?: { of(item: I): number; max: number } | undefined;
  /** Bounds of the queue; without them the callers bound it. */
  waiting?: {
    /** Items queued; further ones are rejected at once. */
    itemsMax: number;
    /** Longest wait; an item that waited longer is rejected when its turn comes. */
    msMax: number;
    refusal(reason: 'full' | 'late'): Error;
  };
}

/**
 * Combines single requests into batches, where a batch costs about as much as one item: a lone item runs at once, and
 * items that arrive while all batches are running are collected, so batches grow with load.
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

  /** Settles with the item's own outcome. @throws what its batch threw, or the refusal. */
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

  /** Settles once nothing is queued or running, including items added meanwhile. */
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

/** A value, or a promise of it where an engine must ask across the network. */
export type Awaitable<T> = T | Promise<T>;

/** Time in which connections alone are accepted: about as long as the work between two such times. */
const acceptMsMax = 8;

/**
 * Connections that arrive on this thread. Node 20 and later accept one in each turn of the event loop, so that with work
 * in every turn the last of a hundred that came at once would wait for a hundred pieces of it.
 */
class Arrivals {
  #isNew = false;
  #sinceMs: number | undefined;

  /** Notes that a connection was accepted in this turn: the next one may be waiting. */
  note(): void {
    this.#isNew = true;
    this.#sinceMs ??= performance.now();
    // After the work that was put off to this turn.
    setImmediate(() => {
      this.#isNew = false;
    });
  }

  /** True if work is to wait for the next turn. Has been false before it is true for longer than its time. */
  goFirst(): boolean {
    if (this.#isNew && this.#sinceMs !== undefined && performance.now() - this.#sinceMs < acceptMsMax)
      return true;
    this.#sinceMs = undefined;
    return false;
  }
}

export const arrivals = new Arrivals();

/** Time per event loop turn for all users of a budget together: much else happens on their thread. */
const turnMsMax = 4;

/**
 * Lets all work of one kind on this thread share a few milliseconds of each event loop turn: pieces run one after
 * another, those of the owners that wait in turns, so that who has much to do holds up nobody by more than a piece.
 * New connections go first.
 */
export class EventLoopBudget {
  #sinceMs = Number.NEGATIVE_INFINITY;
  readonly #waiting = new Map<string, (() => void)[]>();
  #isGoing = false;

  /** Settles when the caller may do one more piece of its work. Unbounded: callers limit how many wait. */
  take(owner = ''): Promise<void> {
    return new Promise((resolve) => {
      const own = this.#waiting.get(owner);
      if (own) own.push(resolve);
      else this.#waiting.set(owner, [resolve]);
      if (this.#isGoing) return;
      this.#isGoing = true;
      this.#afterThis();
    });
  }

  /** Goes on once all microtasks have run, with them the piece of who was woken last: only then is its time known. */
  #afterThis(): void {
    queueMicrotask(() => process.nextTick(() => this.#next()));
  }

  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#isGoing = false;
      return;
    }
    if (arrivals.goFirst() || performance.now() - this.#sinceMs > turnMsMax) {
      setImmediate(() => {
        this.#sinceMs = performance.now();
        this.#next();
      });
      return;
    }
    const [owner, waiting] = first;
    waiting.shift()?.();
    this.#waiting.delete(owner);
    if (waiting.length > 0) this.#waiting.set(owner, waiting);
    this.#afterThis();
  }
}

export interface CostCacheOptions {
  /** A value is reused for this long, or for so many times as long as finding it took, whichever is longer. */
  freshMs: number;
  freshPerCost: number;
  /** Values kept; beyond it the oldest one goes. */
  max: number;
}

/** A value, and when it was begun to be found. */
export interface CostlyValue<T> {
  value: Promise<T>;
  atMs: number;
}

/**
 * Values that are costly to find: who asks meanwhile or soon after shares one, so that whoever polls takes a bounded
 * share of this thread. A failure is kept for nobody.
 */
export class CostCache<T> {
  readonly #options: CostCacheOptions;
  readonly #kept = new Map<string, CostlyValue<T> & { freshUntilMs: number }>();

  constructor(options: CostCacheOptions) {
    this.#options = options;
  }

  get(key: string, find: () => Promise<T>): CostlyValue<T> {
    const known = this.#kept.get(key);
    if (known !== undefined && Date.now() < known.freshUntilMs) return known;
    const { freshMs, freshPerCost, max } = this.#options;
    const atMs = Date.now();
    const found = { value: find(), atMs, freshUntilMs: Number.POSITIVE_INFINITY };
    found.value.then(
      () => {
        found.freshUntilMs = Date.now() + Math.max(freshMs, freshPerCost * (Date.now() - atMs));
      },
      () => {
        if (this.#kept.get(key) === found) this.#kept.delete(key);
      },
    );
    this.#kept.delete(key);
    this.#kept.set(key, found);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > max && oldest !== undefined) this.#kept.delete(oldest);
    return found;
  }
}
