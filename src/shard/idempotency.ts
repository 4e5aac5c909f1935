import type { DeviceKey } from '../core/identity.ts';
import { uuidTimeMs } from '../core/uuid.ts';
import type { Table } from '../store/environment.ts';
import { keyOfIdempotency } from './keys.ts';

/** Kept a little longer than keys are accepted, so that a request that is just in time finds its answer. */
const graceMs = 60_000;

/** The idempotency keys that a shard remembers (D18), inside its owner's write transaction. */
export class IdempotencyKeys {
  readonly #table: Table;
  readonly #windowMs: number;

  constructor(table: Table, windowSeconds: number) {
    this.#table = table;
    this.#windowMs = windowSeconds * 1_000;
  }

  /** Remembers a key that is new; for one that is known, says whether it stood for the same request. */
  claim(device: DeviceKey, key: Uint8Array, digest: Uint8Array): 'new' | 'same' | 'different' {
    const entry = keyOfIdempotency(key, device);
    const known = this.#table.getBinary(entry);
    if (known !== undefined) return known.equals(digest) ? 'same' : 'different';
    this.#table.putSync(entry, Buffer.from(digest));
    return 'new';
  }

  /** Forgets keys whose own time is out of the window: a range from the front, since UUIDv7 sorts by time. */
  expire(nowMs: number, limit: number): number {
    let removed = 0;
    for (const key of [...this.#table.getKeys({ limit })]) {
      if (uuidTimeMs(key) >= nowMs - this.#windowMs - graceMs) break;
      this.#table.removeSync(key);
      removed += 1;
    }
    return removed;
  }
}
