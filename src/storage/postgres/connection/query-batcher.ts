import { unavailable } from '../../../core/errors.ts';

/** Of one statement: more of them save no more. */
const gatheredMax = 1_000;
/** What waits to be asked: more are refused at once. */
const waitingMax = 10_000;

interface Asked<K, V> {
  key: K;
  untilMs: number;
  resolve(value: V): void;
  reject(error: unknown): void;
}

/** What one statement carries at most, but for its first. */
interface GatheredBytes<K> {
  of(key: K): number;
  max: number;
}

/**
 * One statement for what all requests of one turn of the event loop ask, and for what comes while it is under way:
 * a statement costs tens of microseconds whatever it asks for.
 */
export class Gathered<K, V> {
  readonly #ask: (keys: readonly K[]) => Promise<readonly V[]>;
  readonly #underWayMax: number;
  readonly #waitMilliseconds: number;
  readonly #bytes: GatheredBytes<K> | undefined;
  #asked: Asked<K, V>[] = [];
  #underWay = 0;

  /**
   * `ask` answers a value for each key, in their order. What has waited for longer than `waitMilliseconds` is refused:
   * the database is stuck, or far too slow.
   */
  constructor(
    ask: (keys: readonly K[]) => Promise<readonly V[]>,
    underWayMax: number,
    waitMilliseconds: number,
    bytes?: GatheredBytes<K>,
  ) {
    this.#ask = ask;
    this.#underWayMax = underWayMax;
    this.#waitMilliseconds = waitMilliseconds;
    this.#bytes = bytes;
  }

  /** @throws ApiError unavailable */
  get(key: K): Promise<V> {
    if (this.#asked.length >= waitingMax)
      return Promise.reject(unavailable('Too many wait for the database.'));
    const untilMs = performance.now() + this.#waitMilliseconds;
    return new Promise((resolve, reject) => {
      this.#asked.push({ key, untilMs, resolve, reject });
      if (this.#asked.length === 1 && this.#underWay < this.#underWayMax) setImmediate(() => void this.#go());
    });
  }

  async #go(): Promise<void> {
    if (this.#underWay >= this.#underWayMax) return;
    this.#underWay += 1;
    while (this.#asked.length > 0) {
      this.#refuseLate();
      const asked = this.#asked.splice(0, this.#next());
      if (asked.length === 0) break;
      try {
        const values = await this.#ask(asked.map(({ key }) => key));
        for (const [index, { resolve }] of asked.entries()) resolve(values[index] as V);
      } catch (error) {
        for (const { reject } of asked) reject(error);
      }
    }
    this.#underWay -= 1;
  }

  #refuseLate(): void {
    const nowMs = performance.now();
    const end = this.#asked.findIndex(({ untilMs }) => untilMs > nowMs);
    const late = this.#asked.splice(0, end < 0 ? this.#asked.length : end);
    for (const { reject } of late) reject(unavailable('The database is too slow.'));
  }

  /** How many the next statement carries. */
  #next(): number {
    if (this.#bytes === undefined) return gatheredMax;
    const { of, max } = this.#bytes;
    let bytes = 0;
    const beyond = this.#asked.findIndex(({ key }, index) => {
      bytes += of(key);
      return index > 0 && bytes > max;
    });
    return beyond === -1 ? gatheredMax : Math.min(beyond, gatheredMax);
  }
}
