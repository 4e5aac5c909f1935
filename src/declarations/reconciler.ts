import { KeyedMutex, sleep } from '../core/async.ts';
import { type Log, logFailure } from '../core/telemetry/log.ts';
import type { NamedDeclarations } from './named-declarations.ts';

/** Delay before another attempt. */
const retryMilliseconds = 1_000;

export interface ReconcilerOptions<Declared extends { id: string; fleetId: string; name: string }> {
  declarations: NamedDeclarations<Declared>;
  /** Brings what runs in line with what is declared now, which may have changed once more, or be gone. */
  apply(declared: Declared): Promise<void>;
  log: Log;
}

/**
 * Makes declarations take effect on the leader, whichever node wrote them: those of one id one after the other, each
 * until it succeeds. Nothing needs to be remembered for the next leader, which starts from what is declared.
 */
export class Reconciler<Declared extends { id: string; fleetId: string; name: string }> {
  readonly #options: ReconcilerOptions<Declared>;
  readonly #mutex = new KeyedMutex<string>();
  readonly #underWay = new Set<Promise<void>>();
  readonly #stopping = new AbortController();

  constructor(options: ReconcilerOptions<Declared>) {
    this.#options = options;
  }

  /** Applies all that is declared, and from now on every change. Settles after the first attempt at each. */
  async start(): Promise<void> {
    const { declarations } = this.#options;
    declarations.onChange((declared) => this.#run(declared));
    await Promise.all(declarations.all().map((declared) => this.#run(declared)));
  }

  /** Settles once everything that was declared before the call has been attempted. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  /** The next leader does the rest. */
  async stop(): Promise<void> {
    this.#options.declarations.onChange();
    this.#stopping.abort();
    await this.settled();
  }

  /** Settles after the first attempt; a failed one is logged and repeated. */
  async #run(declared: Declared): Promise<void> {
    const attempt = this.#mutex.run(declared.id, () => this.#attempt(declared));
    this.#underWay.add(attempt);
    await attempt.finally(() => this.#underWay.delete(attempt));
  }

  async #attempt(declared: Declared): Promise<void> {
    const { apply, log } = this.#options;
    const { signal } = this.#stopping;
    if (signal.aborted) return;
    try {
      await apply(declared);
    } catch (error) {
      if (signal.aborted) return;
      const { fleetId: fleet, name } = declared;
      logFailure(log, error, 'following a declaration failed; retrying', { fleet, name });
      void sleep(retryMilliseconds, signal).then(() => this.#run(declared));
    }
  }
}
