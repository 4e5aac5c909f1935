import { type DeviceKey, deviceKeyLength } from '../../core/identity.ts';
import type { Row } from '../../storage/postgres/connection/database.ts';
import type { DatabaseTable } from '../../storage/postgres/schema/table.ts';
import * as rows from '../../storage/postgres/schema/tables.ts';

/** A table whose rows belong to devices, which is told from their keys. */
export interface DeviceTable<R extends Row = Row> {
  kind: string;
  table: DatabaseTable<R>;
  deviceOf(key: R): DeviceKey;
}

function of<R extends Row & { device: DeviceKey }>(kind: string, table: DatabaseTable<R>): DeviceTable<R> {
  return { kind, table, deviceOf: ({ device }) => device };
}

const idempotencyKeys: DeviceTable<rows.IdempotencyRow> = {
  kind: 'idempotency keys',
  table: rows.idempotency,
  // What else a scope says of who uses the key comes behind the device.
  deviceOf: ({ scope }) => scope.slice(0, deviceKeyLength) as DeviceKey,
};

/** All that goes with a device to another database: everything but the log, and what is counted of others. */
export const deviceTables: readonly DeviceTable[] = [
  of('devices', rows.device),
  of('tags', rows.deviceTag),
  of('last seen', rows.activity),
  of('mailboxes', rows.mailbox),
  of('mails', rows.mail),
  of('delayed mails', rows.delayedMail),
  of('receipts', rows.receipt),
  of('dead letters', rows.deadLetter),
  of('sent once', rows.sent),
  of('broadcast marks', rows.broadcastMark),
  idempotencyKeys,
];
