import { uuidTimeMs } from '../../core/uuid.ts';
import {
  type IdempotencyLimits,
  type KeyRefusal,
  keyDigestBytes,
  keyRefusal,
} from '../../domain/idempotency.ts';
import { fixedBytes } from './codec.ts';
import type { TableLayout } from './collection.ts';
import { KeyCodec, textField } from './key-codec.ts';
import type { Rows } from './table-store.ts';

/** Retention beyond the window, so that a request just in time finds its answer. */
const graceMs = 60_000;
const forgottenKey = Buffer.from('forgotten');
const timeBytes = 6;
const nothing: Uint8Array = new Uint8Array(0);

/** The result of claiming a key: a new request, a repeated one, or a refusal. */
export type KeyClaim = 'stored' | 'replayed' | KeyRefusal;

/** Remembered idempotency keys (D18), inside a write transaction. Keys of different `scope`s are distinct. */
export class IdempotencyKeys {
  readonly #table: Rows;
  readonly #times: Rows;
  readonly #limits: IdempotencyLimits;
  readonly #windowMs: number;
  /** The latest time among forgotten keys. */
  #forgottenMs = 0;

  constructor(table: Rows, times: Rows, limits: IdempotencyLimits) {
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
    const known = this.#table.get(keyOfIdempotency(key, scope));
    if (known !== undefined) {
      const isSame = known.subarray(0, keyDigestBytes).equals(digest);
      return isSame ? known.subarray(keyDigestBytes) : 'key_reused';
    }
    return keyRefusal(key, Date.now(), this.#forgottenMs, this.#limits);
  }

  /** Stores a key with the result to repeat. */
  remember(scope: string, key: Uint8Array, digest: Uint8Array, result = nothing): void {
    this.#table.put(keyOfIdempotency(key, scope), Buffer.concat([digest, result]));
  }

  /** Forgets keys outside the window: a range from the front, since UUIDv7 sorts by time. */
  expire(trustedMs: number, limit: number): number {
    let removed = 0;
    for (const key of [...this.#table.keys({ limit })]) {
      const timeMs = uuidTimeMs(key);
      if (timeMs >= trustedMs - this.#windowMs - graceMs) break;
      this.#table.delete(key);
      this.#forgottenMs = Math.max(this.#forgottenMs, timeMs);
      removed += 1;
    }
    if (removed > 0) this.#times.put(forgottenKey, timeValue(this.#forgottenMs));
    return removed;
  }

  /** Restores the state after a failed transaction. */
  rollback(): void {
    this.#forgottenMs = forgottenMsOf(this.#times);
  }
}

/**
 * idempotency: the key (a UUIDv7, so in order of time), then its scope: a device, or a device and `senderMark` for
 * keys of its mail senders.
 */
export function keyOfIdempotency(key: Uint8Array, scope: string): Buffer {
  return Buffer.concat([key, Buffer.from(scope, 'latin1')]);
}

function timeValue(ms: number): Buffer {
  const bytes = Buffer.alloc(timeBytes);
  bytes.writeUIntBE(ms, 0, timeBytes);
  return bytes;
}

function forgottenMsOf(times: Rows): number {
  const bytes = times.get(forgottenKey);
  return bytes === undefined ? 0 : bytes.readUIntBE(0, timeBytes);
}

/** A table that is only for the time of forgotten keys. */
export function forgottenTimes(name: string): TableLayout<[string], Buffer> {
  return { name, key: new KeyCodec(textField(/^forgotten$/)), value: fixedBytes(timeBytes) };
}

/** True if a record of the table is the time of forgotten keys. */
export function isForgottenRecord(key: Buffer, value: Buffer): boolean {
  return key.equals(forgottenKey) && value.length === timeBytes;
}

/** Copies the later time, so that a shard accepts no key that the devices' previous shard has forgotten. */
export function mergeForgotten(source: Rows, target: Rows): void {
  const forgottenMs = Math.max(forgottenMsOf(source), forgottenMsOf(target));
  if (forgottenMs > 0) target.put(forgottenKey, timeValue(forgottenMs));
}
