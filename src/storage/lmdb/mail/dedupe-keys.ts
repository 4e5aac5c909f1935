import type { DeviceKey } from '../../../core/identity.ts';
import { copyUuid } from '../../../core/uuid.ts';
import type { Table } from '../environment/stored-tables.ts';
import { keyOfSent } from '../layout/keys.ts';

/** What mail was sent for (`Enqueue.once`), and which mail it was; inside the owner's write transaction. */
export class DedupeKeys {
  readonly #table: Table;

  constructor(table: Table) {
    this.#table = table;
  }

  mailIdOf(once: Uint8Array, device: DeviceKey): Buffer | undefined {
    const mailId = this.#table.getBinaryFast(keyOfSent(once, device));
    return mailId && copyUuid(mailId);
  }

  remember(once: Uint8Array, device: DeviceKey, mailId: Buffer): void {
    this.#table.putSync(keyOfSent(once, device), mailId);
  }

  /** At most `limit`, oldest first. Answers how many. */
  forget(before: Uint8Array | undefined, limit: number): number {
    const keys = [...this.#table.getKeys({ ...sentBefore(before), limit })];
    for (const key of keys) this.#table.removeSync(key);
    return keys.length;
  }
}

/** The range of the keys that sort before a UUIDv7, or of all. */
export function sentBefore(before: Uint8Array | undefined): { end?: Buffer } {
  return before === undefined ? {} : { end: Buffer.from(before) };
}
