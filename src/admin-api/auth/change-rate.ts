import { rateLimited } from '../../core/errors.ts';
import { RateLimiter } from '../../core/rate-limiter.ts';
import type { Principal } from '../request/scope.ts';

/** How many seconds' worth may come at once: a script that sets something up is not to be slowed. */
const burstSeconds = 10;
/** Of tokens that were revoked, what is left of them is forgotten so often. */
const forgetMs = 60_000;

/**
 * So many changes a second of each token: each is written to the audit log twice, and a token that floods it would
 * have pushed out of it in minutes what its own fleet did. Mail is no change.
 */
export class ChangeRate {
  readonly #config: { readonly tokenChangesPerSecondMax: number };
  readonly #limiters = new Map<string, RateLimiter>();
  #forgottenAtMs = 0;

  constructor(config: { readonly tokenChangesPerSecondMax: number }) {
    this.#config = config;
  }

  /** @throws ApiError rate_limited. */
  take({ id }: Pick<Principal, 'id'>): void {
    const { tokenChangesPerSecondMax: perSecondMax } = this.#config;
    if (perSecondMax === 0) return;
    this.#forget();
    const name = id ?? 'bootstrap';
    const limiter = this.#limiters.get(name) ?? new RateLimiter(burstSeconds);
    this.#limiters.set(name, limiter);
    const wait = limiter.take(perSecondMax);
    if (wait === 0) return;
    throw rateLimited(
      `This token makes more than ${perSecondMax} changes a second (tokenChangesPerSecondMax).`,
      wait,
    );
  }

  /** Those that are full again are as if they had never been there. */
  #forget(): void {
    const nowMs = performance.now();
    if (nowMs - this.#forgottenAtMs < forgetMs) return;
    this.#forgottenAtMs = nowMs;
    for (const [name, limiter] of this.#limiters) if (limiter.isFull()) this.#limiters.delete(name);
  }
}
