import { type DeviceKey, fleetIdOf } from '../../../core/identity.ts';
import { waitingBytesOf } from '../../../domain/mail/mail-bytes.ts';
import type { Environment } from '../environment/environment.ts';
import type { Table } from '../environment/stored-tables.ts';
import { decodeDelayed } from '../layout/delayed-record.ts';
import { keyOfFleet, readDevice, readSequence, sequenceBytes } from '../layout/keys.ts';
import { readPayloadBytes } from '../layout/mail-record.ts';
import { openTables } from '../layout/tables.ts';

/** Bytes of a fleet's waiting mail in one shard, as of the last commit. */
export function readMailBytes(table: Table, fleetId: string): number {
  const bytes = table.getBinary(keyOfFleet(fleetId));
  return bytes === undefined ? 0 : decodeMailBytes(bytes);
}

export function decodeMailBytes(bytes: Buffer): number {
  return readSequence(bytes, 0);
}

/** A fleet without waiting mail has no record. */
function storeMailBytes(table: Table, fleetId: string, total: number): void {
  if (total <= 0) {
    table.removeSync(keyOfFleet(fleetId));
    return;
  }
  const bytes = Buffer.alloc(sequenceBytes);
  bytes.writeUIntBE(total, 0, sequenceBytes);
  table.putSync(keyOfFleet(fleetId), bytes);
}

/**
 * Bytes of the mail that waits in a shard, by fleet, inside its owner's write transaction: kept in memory, and stored
 * once with each transaction that changes them, so that they hold after any crash and no start counts.
 */
export class MailBytes {
  readonly #table: Table;
  /** Totals by fleet, first taken from LMDB. */
  readonly #totals = new Map<string, number>();
  readonly #changed = new Set<string>();

  constructor(table: Table) {
    this.#table = table;
  }

  of(fleetId: string): number {
    return this.#totals.get(fleetId) ?? readMailBytes(this.#table, fleetId);
  }

  /** Counts a mail that begins to wait. */
  add(device: DeviceKey, payloadBytes: number): void {
    this.#change(device, waitingBytesOf(payloadBytes));
  }

  /** Counts a mail that waits no more. */
  remove(device: DeviceKey, payloadBytes: number): void {
    this.#change(device, -waitingBytesOf(payloadBytes));
  }

  /** Stores what the transaction has changed. */
  flush(): void {
    for (const fleetId of this.#changed) storeMailBytes(this.#table, fleetId, this.of(fleetId));
    this.#changed.clear();
  }

  /** Discards the totals of a failed transaction. */
  rollback(): void {
    this.#totals.clear();
    this.#changed.clear();
  }

  #change(device: DeviceKey, bytes: number): void {
    const fleetId = fleetIdOf(device);
    this.#totals.set(fleetId, this.of(fleetId) + bytes);
    this.#changed.add(fleetId);
  }
}

/** Counts a stored mail, or a delayed one, for a shard whose mail was never counted. */
export function countOlderMail(table: Table, key: Buffer, mail: Buffer): void {
  const fleetId = fleetIdOf(readDevice(key, 0));
  storeMailBytes(table, fleetId, readMailBytes(table, fleetId) + waitingBytesOf(readPayloadBytes(mail)));
}

/** Counts all mail again after resharding. Idempotent. */
export function countMails(environment: Environment): void {
  const { mail, delayed, fleetMail } = openTables(environment);
  const totals = new Map<string, number>();
  const count = (key: Buffer, record: Buffer): void => {
    const fleetId = fleetIdOf(readDevice(key, 0));
    totals.set(fleetId, (totals.get(fleetId) ?? 0) + waitingBytesOf(readPayloadBytes(record)));
  };
  for (const { key, value } of mail.getRange({})) count(key, value);
  for (const { key, value } of delayed.getRange({})) count(key, decodeDelayed(value).mail);
  environment.writeSync(() => {
    fleetMail.clearSync();
    for (const [fleetId, total] of totals) storeMailBytes(fleetMail, fleetId, total);
  });
}
