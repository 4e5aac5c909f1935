import type { Sandbox } from './sandbox.ts';

/** Runs after which a sandbox is replaced, which bounds what its action leaves in it. */
const runsPerSandboxMax = 1_000;
/** Runs between two measurements of a sandbox's memory; at first it is measured after each doubling of the runs. */
const measuredEvery = 64;
/**
 * Memory of a new sandbox: the engine's data and stack, the language's objects, and its objects on the thread's heap.
 */
const ownBytes = 524_288;

interface Kept {
  sandbox: Sandbox;
  runs: number;
  bytes: number;
}

/**
 * Sandboxes ready for another run of their action. Creating one takes milliseconds, a run in a warm one a fraction of
 * one. The most recently used stay, as many as fit in memory.
 */
export class WarmSandboxes {
  readonly #bytesMax: number;
  /** In order of last use, the latest last. */
  readonly #sandboxes = new Map<string, Kept>();
  readonly #taken = new WeakMap<Sandbox, Kept>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  take(name: string): Sandbox | undefined {
    const kept = this.#sandboxes.get(name);
    if (kept === undefined) return undefined;
    this.#sandboxes.delete(name);
    this.#bytes -= kept.bytes;
    this.#taken.set(kept.sandbox, kept);
    return kept.sandbox;
  }

  /** Call after a successful run. */
  keep(name: string, sandbox: Sandbox): void {
    const { runs, bytes } = this.#taken.get(sandbox) ?? { runs: 0, bytes: 0 };
    const isDue = ((runs + 1) & runs) === 0 || runs % measuredEvery === 0;
    const kept = { sandbox, runs: runs + 1, bytes: isDue ? ownBytes + sandbox.grownBytes() : bytes };
    if (kept.runs >= runsPerSandboxMax) return;
    this.#sandboxes.set(name, kept);
    this.#bytes += kept.bytes;
    for (const [eldest, { bytes: freed }] of this.#sandboxes) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#sandboxes.delete(eldest);
      this.#bytes -= freed;
    }
  }
}
