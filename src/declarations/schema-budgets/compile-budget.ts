import type { Settings } from '../../core/config/settings.ts';
import { unavailable } from '../../core/errors.ts';
import type { CheckBudget } from './check-budget.ts';

/** How long a share of compilations lasts. */
const windowMs = 1_000;
/**
 * States that are kept, as a multiple of those compiled within the window: of the default, some 15 MB for 25 to 50 ms
 * a second, and at most 50 to 80 MB for what is built as texts are met (`automatonBytesPerState`).
 */
const keptFactor = 10;

/**
 * Limits what one fleet may compile on this thread: so that thirty large schemas whose first bodies come at once are
 * compiled one after the other, and the memory of a thousand is not used at once.
 */
export class CompileBudget {
  readonly #settings: Settings<{ schemaPatternStatesMax: number }>;
  readonly #checks: CheckBudget;
  readonly #defers: boolean;
  #sinceMs = Number.NEGATIVE_INFINITY;
  #taken = 0;
  /** Those that are compiled, the oldest first. */
  readonly #kept: { states: number; release(): void }[] = [];
  #keptStates = 0;

  constructor(settings: Settings<{ schemaPatternStatesMax: number }>, checks: CheckBudget, defers: boolean) {
    this.#settings = settings;
    this.#checks = checks;
    this.#defers = defers;
  }

  /**
   * Accounts for a compilation; `release` is called when room is needed for another.
   * @throws ApiError unavailable if the fleet has had its share; a first one always fits.
   */
  take(states: number, release: () => void): void {
    const { schemaPatternStatesMax: statesMax } = this.#settings.current;
    if (this.#defers) this.#checks.admitCompilation(states);
    const nowMs = performance.now();
    if (nowMs - this.#sinceMs > windowMs) [this.#sinceMs, this.#taken] = [nowMs, 0];
    if (this.#defers && this.#taken > 0 && this.#taken + states > statesMax) {
      const msg = 'Too many schemas of this fleet are compiled at once (schemaPatternStatesMax). Retry.';
      throw unavailable(msg, windowMs / 1_000);
    }
    this.#taken += states;
    this.#kept.push({ states, release });
    this.#keptStates += states;
    while (this.#keptStates > keptFactor * statesMax && this.#kept.length > 1) {
      const oldest = this.#kept.shift();
      this.#keptStates -= oldest?.states ?? 0;
      oldest?.release();
    }
  }
}
