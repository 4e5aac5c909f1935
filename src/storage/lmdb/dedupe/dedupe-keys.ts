import type { DeviceKey } from '../../../core/identity.ts';
import { copyUuid } from '../../../core/uuid.ts';
import type { Table } from '../environment/stored-tables.ts';
import { keyOfDedupe } from '../layout/keys.ts';

/** Dedupe keys (`Enqueue.dedupeKey`) and the mails they stand for; inside the owner's write transaction. */
export class DedupeKeys {
  readonly #table: Table;

  constructor(table: Table) {
    this.#table = table;
  }

  mailIdOf(dedupeKey: Uint8Array, device: DeviceKey): Buffer | undefined {
    const mailId = this.#table.getBinaryFast(keyOfDedupe(dedupeKey, device));
    return mailId && copyUuid(mailId);
  }

  remember(dedupeKey: Uint8Array, device: DeviceKey, mailId: Buffer): void {
    this.#table.putSync(keyOfDedupe(dedupeKey, device), mailId);
  }

  /** Removes at most `limit` keys, oldest first, and returns how many. */
  prune(before: Uint8Array | undefined, limit: number): number {
    const keys = [...this.#table.getKeys({ ...dedupeKeysBefore(before), limit })];
    for (const key of keys) this.#table.removeSync(key);
    return keys.length;
  }
}

/** The range of keys that sort before a UUIDv7, or of all. */
export function dedupeKeysBefore(before: Uint8Array | undefined): { end?: Buffer } {
  return before === undefined ? {} : { end: Buffer.from(before) };
}
