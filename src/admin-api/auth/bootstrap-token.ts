import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Bootstrap } from '../request/context.ts';

/**
 * The token that a first start makes, so that an operator on the server's machine can begin. It stays the same over
 * restarts, so that scripts keep working; each time it is turned on again there is a new one.
 */
export class BootstrapToken implements Bootstrap {
  /** Undefined while it is off. */
  #token: string | undefined;
  #digest: Buffer | undefined;
  /** Of the one that was turned off, so that its bearer can be told why. */
  #offDigest: Buffer | undefined;

  /** `known`: as it was found. */
  constructor(known: string | undefined, isOn: boolean) {
    if (known !== undefined) this.#put(known);
    this.turn(isOn);
  }

  get token(): string | undefined {
    return this.#token;
  }

  turn(isOn: boolean): void {
    if (isOn === (this.#token !== undefined)) return;
    if (isOn) this.#put(randomBytes(32).toString('base64url'));
    else {
      this.#offDigest = this.#digest;
      this.#token = undefined;
      this.#digest = undefined;
    }
  }

  /** Digests are compared, so that the time it takes tells neither a length nor a common beginning. */
  check(bearer: string): 'accepted' | 'off' | 'unknown' {
    const digest = hash('sha256', bearer, 'buffer');
    if (this.#digest !== undefined && timingSafeEqual(digest, this.#digest)) return 'accepted';
    if (this.#offDigest !== undefined && timingSafeEqual(digest, this.#offDigest)) return 'off';
    return 'unknown';
  }

  #put(token: string): void {
    this.#token = token;
    this.#digest = hash('sha256', token, 'buffer');
  }
}
