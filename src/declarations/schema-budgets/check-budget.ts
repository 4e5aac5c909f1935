import type { Settings } from '../../core/config/settings.ts';
import { unavailable } from '../../core/errors.ts';
import { RateLimiter } from '../../core/rate-limiter.ts';

/** Time that a check may take without being counted: nearly all take microseconds, and others wait no longer for it. */
const usualMs = 5;
/** Steps, times the bytes of the body, that take no longer than that. */
const usualSteps = 250_000;
/** States that are compiled within it. */
const usualStates = 250;
/** How long time that was not taken is saved up. */
const burstSeconds = 100;

/**
 * Limits the time of this thread that one fleet's schemas take, on which everybody else waits: one body may take a
 * second within the limits of its schema, and a device may send many. Only what could take long is ever refused.
 */
export class CheckBudget {
  readonly #settings: Settings<{ schemaCheckMillisecondsPerSecondMax: number }>;
  readonly #rate = new RateLimiter(burstSeconds);

  constructor(settings: Settings<{ schemaCheckMillisecondsPerSecondMax: number }>) {
    this.#settings = settings;
  }

  /** @throws ApiError unavailable while more time was taken than there is, if this check could take long too. */
  admitCheck(steps: () => number, bytes: number): void {
    this.#admit(() => steps() * bytes > usualSteps);
  }

  /** The same for compiling a schema. */
  admitCompilation(states: number): void {
    this.#admit(() => states > usualStates);
  }

  /** Counts what a check or a compilation took. */
  spend(milliseconds: number): void {
    const { schemaCheckMillisecondsPerSecondMax: perSecondMax } = this.#settings.current;
    if (perSecondMax > 0 && milliseconds > usualMs) this.#rate.spend(perSecondMax, milliseconds - usualMs);
  }

  /** Seconds until the time that was taken is made up for; 0 if none is owed. */
  get waitSeconds(): number {
    const { schemaCheckMillisecondsPerSecondMax: perSecondMax } = this.#settings.current;
    return perSecondMax > 0 ? this.#rate.wait(perSecondMax, 0) : 0;
  }

  #admit(isCostly: () => boolean): void {
    const { waitSeconds } = this;
    if (waitSeconds === 0 || !isCostly()) return;
    const msg =
      'The bodies of this fleet take too long to check (schemaCheckMillisecondsPerSecondMax). Retry later.';
    throw unavailable(msg, Math.ceil(waitSeconds));
  }
}
