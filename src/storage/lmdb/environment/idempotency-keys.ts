import { uuidTimeMs } from '../../../core/uuid.ts';
import {
  type IdempotencyLimits,
  type KeyRefusal,
  keyDigestBytes,
  keyRefusal,
} from '../../../domain/idempotency.ts';
import { keyOfIdempotency, readSequence, sequenceBytes, sequenceKey } from '../layout/keys.ts';
import type { Table } from './stored-tables.ts';

/** Retention beyond the window, so that a request just in time finds its answer. */
const graceMs = 60_000;
const forgottenKey = Buffer.from('forgotten');
const nothing: Uint8Array = new Uint8Array(0);

/** The result of claiming a key: a new request, a repeated one, or a refusal. */
export type KeyClaim = 'stored' | 'replayed' | KeyRefusal;

/** Remembered idempotency keys (D18), inside a write transaction. Keys of different `scope`s are distinct. */
export class IdempotencyKeys {
  readonly #table: Table;
  readonly #times: Table;
  readonly #limits: IdempotencyLimits;
  readonly #windowMs: number;
  /** The latest time among forgotten keys. */
  #forgottenMs = 0;

  constructor(table: Table, times: Table, limits: IdempotencyLimits) {
    this.#table = table;
    this.#times = times;
    this.#windowMs = limits.idempotencyWindowSeconds * 1_000;
    this.#limits = limits;
    this.rollback();
  }

  /**
   * Claims a key. A remembered key is answered whatever the time: the device repeats a request whose answer it
   * missed. A new one is checked by its time (domain/idempotency.ts).
   */
  claim(scope: string, key: Uint8Array, digest: Uint8Array): KeyClaim {
    const known = this.find(scope, key, digest);
    if (known === undefined) this.remember(scope, key, digest);
    if (known === undefined) return 'stored';
    return typeof known === 'string' ? known : 'replayed';
  }

  /** The result stored with a key if the digest matches, or why the key is refused. Undefined: a new key. */
  find(scope: string, key: Uint8Array, digest: Uint8Array): KeyRefusal | Buffer | undefined {
    const known = this.#table.getBinary(keyOfIdempotency(key, scope));
    if (known !== undefined) {
      const isSame = known.subarray(0, keyDigestBytes).equals(digest);
      return isSame ? known.subarray(keyDigestBytes) : 'key_reused';
    }
    return keyRefusal(key, Date.now(), this.#forgottenMs, this.#limits);
  }

  /** Stores a key with the result to repeat. */
  remember(scope: string, key: Uint8Array, digest: Uint8Array, result = nothing): void {
    this.#table.putSync(keyOfIdempotency(key, scope), Buffer.concat([digest, result]));
  }

  /** Forgets keys outside the window: a range from the front, since UUIDv7 sorts by time. */
  expire(trustedMs: number, limit: number): number {
    let removed = 0;
    for (const key of [...this.#table.getKeys({ limit })]) {
      const timeMs = uuidTimeMs(key);
      if (timeMs >= trustedMs - this.#windowMs - graceMs) break;
      this.#table.removeSync(key);
      this.#forgottenMs = Math.max(this.#forgottenMs, timeMs);
      removed += 1;
    }
    if (removed > 0) this.#times.putSync(forgottenKey, sequenceKey(this.#forgottenMs));
    return removed;
  }

  /** Restores the state after a failed transaction. */
  rollback(): void {
    this.#forgottenMs = forgottenMsOf(this.#times);
  }
}

function forgottenMsOf(times: Table): number {
  const bytes = times.getBinary(forgottenKey);
  return bytes === undefined ? 0 : readSequence(bytes, 0);
}

/** Whether a record of the table is the time of forgotten keys. */
export function isForgottenRecord(key: Buffer, value: Buffer): boolean {
  return key.equals(forgottenKey) && value.length === sequenceBytes;
}

/** Copies the later time, so that a shard accepts no key that the devices' previous shard has forgotten. */
export function mergeForgotten(source: Table, target: Table): void {
  const forgottenMs = Math.max(forgottenMsOf(source), forgottenMsOf(target));
  if (forgottenMs > 0) target.putSync(forgottenKey, sequenceKey(forgottenMs));
}
