import type { Sandbox } from './sandbox.ts';

/** A realm keeps what its action leaves in it: after so many runs a new one is made, so that it cannot grow. */
const runsOfRealmMax = 1_000;
/** How often the memory of a realm is looked at, in its runs; when it is new, after each doubling. */
const measuredEvery = 64;
/** What a realm takes when it is new: the engine's data and stack, the language, and its objects on the thread's heap. */
const ownBytes = 524_288;

interface Kept {
  realm: Sandbox;
  runs: number;
  bytes: number;
}

/**
 * Realms that are ready for another run of their action. To make one takes milliseconds, and a run in one that is
 * there a fraction of one; so as many stay as there is memory for, and those that were used last.
 */
export class WarmSandboxes {
  readonly #bytesMax: number;
  /** The one used last is last. */
  readonly #realms = new Map<string, Kept>();
  readonly #taken = new WeakMap<Sandbox, Kept>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  take(name: string): Sandbox | undefined {
    const kept = this.#realms.get(name);
    if (kept === undefined) return undefined;
    this.#realms.delete(name);
    this.#bytes -= kept.bytes;
    this.#taken.set(kept.realm, kept);
    return kept.realm;
  }

  /** After a run that went well. */
  keep(name: string, realm: Sandbox): void {
    const { runs, bytes } = this.#taken.get(realm) ?? { runs: 0, bytes: 0 };
    const isDue = ((runs + 1) & runs) === 0 || runs % measuredEvery === 0;
    const kept = { realm, runs: runs + 1, bytes: isDue ? ownBytes + realm.grownBytes() : bytes };
    if (kept.runs >= runsOfRealmMax) return;
    this.#realms.set(name, kept);
    this.#bytes += kept.bytes;
    for (const [eldest, { bytes: freed }] of this.#realms) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#realms.delete(eldest);
      this.#bytes -= freed;
    }
  }
}
