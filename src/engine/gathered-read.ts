/** Of one statement: more of them save no more. */
const gatheredMax = 1_000;

interface Asked<K, V> {
  key: K;
  resolve(value: V): void;
  reject(error: unknown): void;
}

/**
 * One statement for what all requests of one turn of the event loop ask, and for what comes while it is under way:
 * a statement costs tens of microseconds whatever it asks for.
 */
export class GatheredRead<K, V> {
  readonly #read: (keys: readonly K[]) => Promise<V[]>;
  #asked: Asked<K, V>[] = [];
  #underWay = 0;
  readonly #underWayMax: number;

  /** `read` answers a value for each key, in their order. */
  constructor(read: (keys: readonly K[]) => Promise<V[]>, underWayMax: number) {
    this.#read = read;
    this.#underWayMax = underWayMax;
  }

  get(key: K): Promise<V> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ key, resolve, reject });
      if (this.#asked.length === 1 && this.#underWay < this.#underWayMax) setImmediate(() => void this.#go());
    });
  }

  async #go(): Promise<void> {
    if (this.#underWay >= this.#underWayMax) return;
    this.#underWay += 1;
    while (this.#asked.length > 0) {
      const asked = this.#asked.splice(0, gatheredMax);
      try {
        const values = await this.#read(asked.map(({ key }) => key));
        for (const [index, { resolve }] of asked.entries()) resolve(values[index] as V);
      } catch (error) {
        for (const { reject } of asked) reject(error);
      }
    }
    this.#underWay -= 1;
  }
}
