import { randomBytes } from 'node:crypto';

/** Of every device secret (D1). */
const secretLength = 36;
const lanes = 2;
/** Drawn at each start: one for each lane of each character. */
const keys = new Int32Array(lanes * secretLength);
randomBytes(keys.byteLength).copy(Buffer.from(keys.buffer));

/**
 * What is remembered of a secret, so that it is known again without being kept: two sums of its characters, each
 * times a random key, modulo 2^32 (Carter and Wegman's universal hashing). Another secret fits by a chance below
 * 2^-50, and guesses are few (D6). Nearly as cheap as to compare the secret itself, where a SHA-256 costs ten times that.
 */
export class SecretFingerprint {
  readonly #a: number;
  readonly #b: number;

  /** Of a well-formed secret. */
  constructor(secret: string) {
    let a = 0;
    let b = 0;
    for (let i = 0, at = 0; i < secretLength; i += 1, at += lanes) {
      const character = secret.charCodeAt(i);
      a = (a + product(at, character)) | 0;
      b = (b + product(at + 1, character)) | 0;
    }
    this.#a = a;
    this.#b = b;
  }

  /** In constant time for text of the right length (D3). */
  fits(text: string): boolean {
    if (text.length !== secretLength) return false;
    let a = this.#a;
    let b = this.#b;
    for (let i = 0, at = 0; i < secretLength; i += 1, at += lanes) {
      const character = text.charCodeAt(i);
      a = (a - product(at, character)) | 0;
      b = (b - product(at + 1, character)) | 0;
    }
    return (a | b) === 0;
  }
}

function product(at: number, character: number): number {
  return Math.imul(keys[at] as number, character);
}
