import { type DeviceKey, deviceKeyLength } from '../../../core/identity.ts';
import { copyUuid } from '../../../core/uuid.ts';
import type { Table } from '../environment/stored-tables.ts';
import { type DelayedRecord, decodeDelayed, encodeDelayed } from '../layout/delayed-record.ts';
import { keyOfDeviceMail, keyOfExpiry, readDevice, sequenceBytes, sequenceKey } from '../layout/keys.ts';
import type { Tables } from '../layout/tables.ts';

/** Damaged entries to know; more of them than this would not be a matter for a running server. */
const stuckMax = 1_000;

/** A table that is keyed by time, device and mail id: what is to happen to a mail, and when. */
export class DueEntries {
  readonly #table: Table;
  readonly #what: string;
  /** Entries whose mail cannot be dealt with since a record is damaged. */
  readonly #stuck = new Set<string>();

  /** `what` is to happen, for the error. */
  constructor(table: Table, what: string) {
    this.#table = table;
    this.#what = what;
  }

  /** How many entries `each` leaves where they are. */
  get stuck(): number {
    return this.#stuck.size;
  }

  /**
   * Hands out what is due, earliest first, at most `limit`.
   * @throws Error at damaged records, once: the next call leaves out what this one stopped at.
   */
  each<T>(lifeMs: number, limit: number, act: (key: Buffer, device: DeviceKey) => T): T[] {
    const end = sequenceKey(lifeMs);
    const due = [...this.#table.getKeys({ end, limit: limit + this.#stuck.size })];
    const able = due.filter((key) => !this.#stuck.has(key.toString('latin1')));
    return able.slice(0, limit).map((key) => {
      const device = readDevice(key, sequenceBytes);
      try {
        return act(key, device);
      } catch (cause) {
        if (this.#stuck.size < stuckMax) this.#stuck.add(key.toString('latin1'));
        throw new Error(`the mail of ${device} cannot be ${this.#what}`, { cause });
      }
    });
  }
}

const nothing = Buffer.alloc(0);

/** Mail that waits for its time of delivery, by device and id; `due` has it by time. */
export class DelayedMail {
  readonly #tables: Pick<Tables, 'delayed' | 'due'>;
  readonly #perDeviceMax: number;

  constructor(tables: Tables, perDeviceMax: number) {
    this.#tables = tables;
    this.#perDeviceMax = perDeviceMax;
  }

  /** Counted by LMDB, over a range that is bounded by this very limit. */
  isFull(device: DeviceKey): boolean {
    const limit = this.#perDeviceMax;
    return this.#tables.delayed.getKeysCount({ ...rangeOf(device), limit }) >= limit;
  }

  has(device: DeviceKey, mailId: Uint8Array): boolean {
    return this.#tables.delayed.doesExist(keyOfDeviceMail(device, mailId));
  }

  put(device: DeviceKey, delayed: DelayedRecord): void {
    this.#tables.delayed.putSync(keyOfDeviceMail(device, copyUuid(delayed.mail)), encodeDelayed(delayed));
    this.#tables.due.putSync(keyOfExpiry(delayed.deliverAtMs, device, copyUuid(delayed.mail)), nothing);
  }

  /** Removes it; undefined if there is none of that id. @throws Error for a damaged record. */
  take(device: DeviceKey, mailId: Uint8Array): DelayedRecord | undefined {
    const bytes = this.#tables.delayed.getBinaryFast(keyOfDeviceMail(device, mailId));
    if (bytes === undefined) return undefined;
    const delayed = decodeDelayed(bytes);
    this.#tables.delayed.removeSync(keyOfDeviceMail(device, mailId));
    this.#tables.due.removeSync(keyOfExpiry(delayed.deliverAtMs, device, mailId));
    return delayed;
  }

  /** All of a device that is being deleted. */
  clear(device: DeviceKey): void {
    for (const key of [...this.#tables.delayed.getKeys(rangeOf(device))]) {
      this.take(device, key.subarray(deviceKeyLength));
    }
  }
}

function rangeOf(device: DeviceKey): { start: Buffer; end: Buffer } {
  return { start: Buffer.from(device, 'latin1'), end: Buffer.from(`${device}\xff`, 'latin1') };
}
