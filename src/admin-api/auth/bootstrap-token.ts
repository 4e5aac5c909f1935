import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Bootstrap } from './authorization.ts';

/**
 * The token that the first start creates, so that an operator on the server's machine can begin. It survives restarts,
 * so that scripts keep working; turning it off and on creates a new one.
 */
export class BootstrapToken implements Bootstrap {
  /** Undefined while it is off. */
  #token: string | undefined;
  #digest: Buffer | undefined;
  /** Digest of the token that was turned off, so that its bearer can be told why. */
  #offDigest: Buffer | undefined;

  /** `stored` is the token of an earlier start. */
  constructor(stored: string | undefined, isOn: boolean) {
    if (stored !== undefined) this.#put(stored);
    this.turn(isOn);
  }

  get token(): string | undefined {
    return this.#token;
  }

  get isOn(): boolean {
    return this.#token !== undefined;
  }

  turn(isOn: boolean): void {
    if (isOn === this.isOn) return;
    if (isOn) this.#put(randomBytes(32).toString('base64url'));
    else {
      this.#offDigest = this.#digest;
      this.#token = undefined;
      this.#digest = undefined;
    }
  }

  /** Compares digests, so that timing reveals neither a length nor a common prefix. */
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
