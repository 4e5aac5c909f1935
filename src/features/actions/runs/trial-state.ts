import type { JsonObject } from '../../../declarations/schemas/payload.ts';
import type { RunError, StateWrite } from '../sandbox/run.ts';
import { stateFull } from './action-state.ts';

/** The state that a trial begins with. */
export interface StateBefore {
  /** JSON text; `null` if there is no such key. */
  read(key: string): string;
  count(): number;
}

/** The state that a test gives. */
export function givenState(state: JsonObject = {}): StateBefore {
  const texts = new Map(Object.entries(state).map(([key, value]) => [key, JSON.stringify(value)]));
  return { read: (key) => texts.get(key) ?? 'null', count: () => texts.size };
}

/** The state of an action in a trial: what its runs write is seen by later ones, and stored nowhere. */
export class TrialState {
  readonly #before: StateBefore;
  readonly #written = new Map<string, string | null>();
  #bytes = 0;

  constructor(before: StateBefore) {
    this.#before = before;
  }

  /** One for each key, in order of each key's first write. */
  get writes(): StateWrite[] {
    return [...this.#written].map(([key, value]) => ({ key, value }));
  }

  /** Of the text of all keys and values written. */
  get bytes(): number {
    return this.#bytes;
  }

  read(key: string): string {
    const written = this.#written.get(key);
    return written === undefined ? this.#before.read(key) : (written ?? 'null');
  }

  /** Writes nothing, and returns why, if the state would exceed `keysMax`. */
  write(writes: readonly StateWrite[], keysMax: number): RunError | undefined {
    const added = (all: readonly StateWrite[], has: (key: string) => boolean): number =>
      all.reduce((sum, { key, value }) => sum + Number(value !== null) - Number(has(key)), 0);
    const more = added(writes, (key) => this.read(key) !== 'null');
    const sofar = added(this.writes, (key) => this.#before.read(key) !== 'null');
    if (more > 0 && this.#before.count() + sofar + more > keysMax) return stateFull(keysMax);
    for (const { key, value } of writes) {
      this.#bytes += (value?.length ?? 0) - (this.#written.get(key)?.length ?? 0);
      if (!this.#written.has(key)) this.#bytes += key.length;
      this.#written.set(key, value);
    }
    return undefined;
  }
}
