import { type DeviceKey, deviceKeyLength } from '../../../core/identity.ts';
import { copyUuid } from '../../../core/uuid.ts';
import { picked, shifted } from '../../../domain/fields.ts';
import type { DelayedMail } from '../../../domain/mail/mail.ts';
import { delayedFields } from '../../../domain/mail/mail-fields.ts';
import type { Page } from '../../../domain/page.ts';
import type { Table } from '../environment/stored-tables.ts';
import { type DelayedRecord, decodeDelayed, encodeDelayed } from '../layout/delayed-record.ts';
import { keyOfDeviceMail, keyOfExpiry, readDevice, sequenceBytes, sequenceKey } from '../layout/keys.ts';
import { decodeMail, readPayloadBytes } from '../layout/mail-record.ts';
import { storedJumpsMs } from '../layout/shard-clock.ts';
import type { Tables } from '../layout/tables.ts';
import type { MailBytes } from './mail-bytes.ts';

/** Damaged entries remembered; with more of them a running server cannot cope anyway. */
const stuckMax = 1_000;

/** A schedule: a table keyed by time, device and mail id. */
export class DueEntries {
  readonly #table: Table;
  readonly #what: string;
  /** Entries that fail because a record is damaged. */
  readonly #stuck = new Set<string>();

  /** `what` names the action, for the error. */
  constructor(table: Table, what: string) {
    this.#table = table;
    this.#what = what;
  }

  /** The number of entries that `each` skips. */
  get stuck(): number {
    return this.#stuck.size;
  }

  /**
   * Applies `act` to due entries, earliest first, at most `limit`.
   * @throws Error for a damaged record, once: the next call skips it.
   */
  each<T>(lifeMs: number, limit: number, act: (key: Buffer, device: DeviceKey) => T): T[] {
    const end = sequenceKey(lifeMs);
    const due = [...this.#table.getKeys({ end, limit: limit + this.#stuck.size })];
    const sound = due.filter((key) => !this.#stuck.has(key.toString('latin1')));
    return sound.slice(0, limit).map((key) => {
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

/** Delayed mail by device and id; the `due` table has it by time. */
export class DelayedMailTable {
  readonly #tables: Pick<Tables, 'delayed' | 'due'>;
  readonly #bytes: MailBytes;
  readonly perDeviceMax: number;

  constructor(tables: Tables, bytes: MailBytes, perDeviceMax: number) {
    this.#tables = tables;
    this.#bytes = bytes;
    this.perDeviceMax = perDeviceMax;
  }

  /** Counted by LMDB, and no further than the limit. */
  count(device: DeviceKey): number {
    return this.#tables.delayed.getKeysCount({ ...rangeOf(device), limit: this.perDeviceMax });
  }

  has(device: DeviceKey, mailId: Uint8Array): boolean {
    return this.#tables.delayed.doesExist(keyOfDeviceMail(device, mailId));
  }

  put(device: DeviceKey, delayed: DelayedRecord): void {
    this.#tables.delayed.putSync(keyOfDeviceMail(device, copyUuid(delayed.mail)), encodeDelayed(delayed));
    this.#tables.due.putSync(keyOfExpiry(delayed.deliverAtMs, device, copyUuid(delayed.mail)), nothing);
    this.#bytes.add(device, readPayloadBytes(delayed.mail));
  }

  /** A copy of a mail; undefined if there is none with this id. @throws Error for a damaged record. */
  find(device: DeviceKey, mailId: Uint8Array): DelayedRecord | undefined {
    const bytes = this.#tables.delayed.getBinaryFast(keyOfDeviceMail(device, mailId));
    return bytes && decodeDelayed(bytes);
  }

  /** Removes and returns a mail; undefined if there is none with this id. @throws Error for a damaged record. */
  take(device: DeviceKey, mailId: Uint8Array): DelayedRecord | undefined {
    const delayed = this.find(device, mailId);
    if (delayed === undefined) return undefined;
    this.#tables.delayed.removeSync(keyOfDeviceMail(device, mailId));
    this.#tables.due.removeSync(keyOfExpiry(delayed.deliverAtMs, device, mailId));
    this.#bytes.remove(device, readPayloadBytes(delayed.mail));
    return delayed;
  }

  /** Removes all mail of a device that is being deleted. */
  clear(device: DeviceKey): void {
    for (const key of [...this.#tables.delayed.getKeys(rangeOf(device))]) {
      this.take(device, key.subarray(deviceKeyLength));
    }
  }
}

/** Lists delayed mail of a device by delivery time: sorts the keys, at most `delayedMailsPerDeviceMax`. */
export function readDelayed(
  { delayed, times }: Pick<Tables, 'delayed' | 'times'>,
  device: DeviceKey,
  after: string,
  limit: number,
): Page<DelayedMail> & { total: number } {
  const cursors = [...delayed.getRange(rangeOf(device))]
    .map(
      ({ key, value }) =>
        value.toString('hex', 0, sequenceBytes) + key.toString('hex', deviceKeyLength, key.length),
    )
    .sort();
  const following = cursors.filter((cursor) => cursor > after).slice(0, limit + 1);
  const page = following.slice(0, limit);
  const jumpsMs = storedJumpsMs(times);
  const items = page.flatMap((cursor) => {
    const id = Buffer.from(cursor.slice(2 * sequenceBytes), 'hex');
    // Absent if it was delivered just now.
    const bytes = delayed.getBinaryFast(keyOfDeviceMail(device, id));
    if (bytes === undefined) return [];
    return [shifted(delayedFields, delayedMailOf(decodeDelayed(bytes)), jumpsMs)];
  });
  const next = following.length > limit ? (page.at(-1) ?? null) : null;
  return { items, next, total: cursors.length };
}

function rangeOf(device: DeviceKey): { start: Buffer; end: Buffer } {
  return { start: Buffer.from(device, 'latin1'), end: Buffer.from(`${device}\xff`, 'latin1') };
}

/** The mail in a record, by the clock of the shard. */
export function delayedMailOf(record: DelayedRecord): DelayedMail {
  return picked(delayedFields, Object.assign(decodeMail(record.mail), record));
}
