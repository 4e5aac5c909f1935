import { hash, randomBytes } from 'node:crypto';
import { ApiError } from '../../core/errors.ts';
import type { Principal } from '../request/scope.ts';

/** Bits of a code, which nobody can guess within its time. */
const codeBits = 128;
/** Lifetime of a code: between a command and a browser. */
export const codeSeconds = 60;
/** Maximum codes that wait for a browser, over all tokens and of one. */
const codesMax = 1_000;
const codesOfTokenMax = 10;

interface Code {
  principal: Principal;
  expiresAtMs: number;
}

/**
 * Codes that a page trades for a session, each once, in the memory of the node that made it. Only their digests are
 * kept, so that looking one up takes the same time however much of it was guessed.
 */
export class ConsoleCodes {
  /** In order of creation. */
  readonly #codes = new Map<string, Code>();

  /**
   * Makes a code for sessions of this principal. Beyond its maximum, the principal's oldest code is dropped.
   * @throws ApiError limit_reached.
   */
  create(principal: Principal, seconds: number = codeSeconds): { code: string; expiresAtMs: number } {
    const nowMs = Date.now();
    for (const [digest, { expiresAtMs }] of this.#codes) {
      if (expiresAtMs <= nowMs) this.#codes.delete(digest);
    }
    const own = [...this.#codes].filter(([, code]) => code.principal.id === principal.id);
    const [oldest] = own;
    if (own.length >= codesOfTokenMax && oldest !== undefined) this.#codes.delete(oldest[0]);
    if (this.#codes.size >= codesMax) {
      throw new ApiError('limit_reached', {
        msg: `Too many codes wait for a browser: ${codesMax}. Retry in a minute.`,
      });
    }
    const code = randomBytes(codeBits / 8).toString('base64url');
    const expiresAtMs = nowMs + seconds * 1_000;
    this.#codes.set(digestOf(code), { principal, expiresAtMs });
    return { code, expiresAtMs };
  }

  /** Uses the code up. Undefined if it was used, has expired or never was. */
  take(code: string): Principal | undefined {
    const digest = digestOf(code);
    const found = this.#codes.get(digest);
    this.#codes.delete(digest);
    return found !== undefined && found.expiresAtMs > Date.now() ? found.principal : undefined;
  }
}

function digestOf(code: string): string {
  return hash('sha256', code, 'base64url');
}
