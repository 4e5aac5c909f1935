import { uuidTimeMs } from '../../../core/uuid.ts';
import {
  type IdempotencyLimits,
  type KeyRefusal,
  keyDigestBytes,
  keyRefusal,
} from '../../../domain/idempotency.ts';
import { keyOfIdempotency, readSequence, sequenceBytes, sequenceKey } from '../layout/keys.ts';
import type { Table } from './stored-tables.ts';

/** Kept a little longer than keys are accepted, so that a request that is just in time finds its answer. */
const graceMs = 60_000;
const forgottenKey = Buffer.from('forgotten');
const nothing: Uint8Array = new Uint8Array(0);

/** What a key stands for: a request to be stored now, one that was, another one, or none that may be taken. */
export type KeyClaim = 'stored' | 'replayed' | KeyRefusal;

/**
 * Idempotency keys that are remembered (D18), inside a write transaction. `scope` says whose a key is: the same
 * one of another scope is another.
 */
export class IdempotencyKeys {
  readonly #table: Table;
  readonly #times: Table;
  readonly #limits: IdempotencyLimits;
  readonly #windowMs: number;
  /** The latest time of any key that was forgotten. */
  #forgottenMs = 0;

  constructor(table: Table, times: Table, limits: IdempotencyLimits) {
    this.#table = table;
    this.#times = times;
    this.#windowMs = limits.idempotencyWindowSeconds * 1_000;
    this.#limits = limits;
    this.rollback();
  }

  /**
   * A key that is remembered is answered whatever the clock says now: the device repeats what it got no answer
   * to. A new one is taken or not by its time (domain/idempotency.ts).
   */
  claim(scope: string, key: Uint8Array, digest: Uint8Array): KeyClaim {
    const known = this.find(scope, key, digest);
    if (known === undefined) this.remember(scope, key, digest);
    if (known === undefined) return 'stored';
    return typeof known === 'string' ? known : 'replayed';
  }

  /** What `remember` was given with it, if it was for the same; or why it is not taken. Undefined: it is new. */
  find(scope: string, key: Uint8Array, digest: Uint8Array): KeyRefusal | Buffer | undefined {
    const known = this.#table.getBinary(keyOfIdempotency(key, scope));
    if (known !== undefined) {
      const isSame = known.subarray(0, keyDigestBytes).equals(digest);
      return isSame ? known.subarray(keyDigestBytes) : 'key_reused';
    }
    return keyRefusal(key, Date.now(), this.#forgottenMs, this.#limits);
  }

  /** With what is to be answered when it comes again. */
  remember(scope: string, key: Uint8Array, digest: Uint8Array, result = nothing): void {
    this.#table.putSync(keyOfIdempotency(key, scope), Buffer.concat([digest, result]));
  }

  /** Forgets keys whose own time is out of the window: a range from the front, since UUIDv7 sorts by time. */
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

  /** After a transaction that failed: what it forgot is still there. */
  rollback(): void {
    this.#forgottenMs = forgottenMsOf(this.#times);
  }
}

function forgottenMsOf(times: Table): number {
  const bytes = times.getBinary(forgottenKey);
  return bytes === undefined ? 0 : readSequence(bytes, 0);
}

/** Whether a record of the table is the time of what was forgotten. */
export function isForgottenRecord(key: Buffer, value: Buffer): boolean {
  return key.equals(forgottenKey) && value.length === sequenceBytes;
}

/** A shard lets in no key that the one it takes a device over from has forgotten. */
export function carryForgotten(source: Table, target: Table): void {
  const forgottenMs = Math.max(forgottenMsOf(source), forgottenMsOf(target));
  if (forgottenMs > 0) target.putSync(forgottenKey, sequenceKey(forgottenMs));
}
