import { rateLimited } from '../../core/errors.ts';
import type { Principal } from '../request/scope.ts';

/** How many seconds' worth may come at once: a script that sets something up is not to be slowed. */
const burstSeconds = 10;
/** Of tokens that were revoked, what is left of them is forgotten so often. */
const forgetSeconds = 60;

interface Bucket {
  /** Changes that may come at once, as they were then. */
  room: number;
  atSeconds: number;
}

/**
 * So many changes a second of each token: each is written to the audit log twice, and a token that floods it would
 * have pushed out of it in minutes what its own fleet did. Mail is no change.
 */
export class ChangeRate {
  readonly #config: { readonly tokenChangesPerSecondMax: number };
  readonly #buckets = new Map<string, Bucket>();
  #forgottenAtSeconds = 0;

  constructor(config: { readonly tokenChangesPerSecondMax: number }) {
    this.#config = config;
  }

  /** @throws ApiError rate_limited. */
  take({ id }: Pick<Principal, 'id'>): void {
    const nowSeconds = performance.now() / 1_000;
    const { tokenChangesPerSecondMax: perSecondMax } = this.#config;
    if (perSecondMax === 0) return;
    this.#forget(nowSeconds);
    const most = burstSeconds * perSecondMax;
    const name = id ?? 'bootstrap';
    const { room, atSeconds } = this.#buckets.get(name) ?? { room: most, atSeconds: nowSeconds };
    const now = Math.min(most, room + (nowSeconds - atSeconds) * perSecondMax);
    const isTaken = now >= 1;
    this.#buckets.set(name, { room: isTaken ? now - 1 : now, atSeconds: nowSeconds });
    if (isTaken) return;
    throw rateLimited(
      `This token makes more than ${perSecondMax} changes a second (tokenChangesPerSecondMax).`,
      (1 - now) / perSecondMax,
    );
  }

  /** Those that are full again are as if they had never been there. */
  #forget(nowSeconds: number): void {
    if (nowSeconds - this.#forgottenAtSeconds < forgetSeconds) return;
    this.#forgottenAtSeconds = nowSeconds;
    for (const [name, { atSeconds }] of this.#buckets) {
      if (nowSeconds - atSeconds >= burstSeconds) this.#buckets.delete(name);
    }
  }
}
