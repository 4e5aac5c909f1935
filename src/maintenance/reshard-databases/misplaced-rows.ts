import { OperatorError } from '../../core/errors.ts';
import { type DeviceKey, deviceIdOf, deviceKeyLength, fleetIdOf } from '../../core/identity.ts';
import type { Database, Row } from '../../storage/postgres/connection/database.ts';
import type { DatabaseTable } from '../../storage/postgres/schema/table.ts';
import * as rows from '../../storage/postgres/schema/tables.ts';
import { RowDigest } from '../copy/row-digest.ts';

/** A table whose rows belong to devices, which is told from their keys. */
interface DeviceTable<R extends Row = Row> {
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
const deviceTables: readonly DeviceTable[] = [
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

/** Keys of one look: they are read without what stands under them. */
const keysMax = 5_000;
/** Rows of one statement: each may have a payload. */
const rowsMax = 500;

/** Where a device belongs among so many databases. */
export type PlaceOf = (device: DeviceKey, databases: number) => number;

/** Of one database: which place it has, and what its devices are placed by. */
export interface Placement {
  index: number;
  /** Before and after the change. */
  from: number;
  to: number;
  placeOf: PlaceOf;
}

interface Page {
  /** Keys that were looked at. */
  passed: number;
  /** Of the rows of devices that belong elsewhere, the keys, by where that is. */
  misplaced: Map<number, Row[]>;
  last: unknown[];
}

/** Whether a device has been put here by the change, or has been here all the time. */
export function isNewHere({ index, from, placeOf }: Placement, device: DeviceKey): boolean {
  return placeOf(device, from) !== index;
}

/** Goes through the keys of a table, in order, from behind one on. */
async function* misplacedIn(
  database: Database,
  { table, deviceOf }: DeviceTable,
  elsewhere: (device: DeviceKey) => number | undefined,
  after?: readonly unknown[],
): AsyncGenerator<Page> {
  const { key, columns } = table.shape;
  const keys = key.join(', ');
  const given = key.map((column, index) => `$${index + 1}::${columns[column]}`).join(', ');
  const select = (where: string): string =>
    `SELECT ${keys} FROM ${table.name} ${where} ORDER BY ${keys} LIMIT ${keysMax}`;
  for (let last: readonly unknown[] | undefined = after; ; ) {
    const found: Row[] = await database.query<Row>(
      select(last === undefined ? '' : `WHERE (${keys}) > (${given})`),
      last,
    );
    const end = found.at(-1);
    if (end === undefined) return;
    const reached = key.map((column) => end[column]);
    last = reached;
    const misplaced = new Map<number, Row[]>();
    for (const row of found) {
      const place = elsewhere(deviceOf(row));
      if (place === undefined) continue;
      const group = misplaced.get(place);
      if (group === undefined) misplaced.set(place, [row]);
      else group.push(row);
    }
    yield { passed: found.length, misplaced, last: reached };
  }
}

/** Whole rows of these keys, some at a time. */
async function* rowsOf(
  database: Database,
  { table }: DeviceTable,
  keys: readonly Row[],
): AsyncGenerator<Row[]> {
  for (let from = 0; from < keys.length; from += rowsMax) {
    yield await database.query<Row>(table.select, table.keysOf(keys.slice(from, from + rowsMax)));
  }
}

interface CopyOptions {
  placement: Placement;
  databases: readonly Database[];
  /** The last key that is copied of a table. */
  doneOf(kind: string): readonly unknown[] | undefined;
  /** Everything up to that key is there, for good. */
  onPage(kind: string, last: readonly unknown[], passed: number): Promise<void>;
}

/**
 * Copies the rows of devices that belong elsewhere to where they belong. They stay where they are too, and to copy
 * them again changes nothing. @throws OperatorError for a device that never belonged here, ApiError unavailable
 */
export async function copyMisplaced(source: Database, options: CopyOptions): Promise<void> {
  const { placement, databases, doneOf, onPage } = options;
  const elsewhere = elsewhereAfter(placement);
  for (const one of deviceTables) {
    for await (const page of misplacedIn(source, one, elsewhere, doneOf(one.kind))) {
      for (const [place, keys] of page.misplaced) {
        const target = databases[place];
        if (target === undefined) throw new Error('a device is placed where no database is');
        for await (const rows of rowsOf(source, one, keys)) {
          await target.query(one.table.put, one.table.rowsOf(rows));
        }
      }
      await onPage(one.kind, page.last, page.passed);
    }
  }
}

/** Where a device of this database belongs after the change; undefined for here. @throws OperatorError */
function elsewhereAfter({ index, from, to, placeOf }: Placement): (device: DeviceKey) => number | undefined {
  return (device) => {
    if (placeOf(device, from) !== index) {
      throw new OperatorError(
        `Device ${deviceIdOf(device)} of fleet ${fleetIdOf(device)} is where it does not belong: name the databases in the order of store.shards, and all of them.`,
      );
    }
    const place = placeOf(device, to);
    return place === index ? undefined : place;
  };
}

/** Removes the rows of devices that belong elsewhere, of so many databases. To do it again changes nothing. */
export async function removeMisplaced(
  database: Database,
  isElsewhere: (device: DeviceKey) => boolean,
  onPassed: (keys: number) => void,
): Promise<void> {
  for (const one of deviceTables) {
    const elsewhere = (device: DeviceKey): number | undefined => (isElsewhere(device) ? 0 : undefined);
    for await (const { misplaced, passed } of misplacedIn(database, one, elsewhere)) {
      const keys = misplaced.get(0);
      if (keys !== undefined) await database.query(one.table.remove, one.table.keysOf(keys));
      onPassed(passed);
    }
  }
}

/** Of each kind, how many rows of these devices there are, and a digest of them. */
export async function digestRows(
  database: Database,
  isMeant: (device: DeviceKey) => boolean,
  digests: Map<string, RowDigest>,
  onPassed: (keys: number) => void,
): Promise<void> {
  for (const one of deviceTables) {
    const digest = digests.get(one.kind) ?? new RowDigest();
    digests.set(one.kind, digest);
    const meant = (device: DeviceKey): number | undefined => (isMeant(device) ? 0 : undefined);
    for await (const { misplaced, passed } of misplacedIn(database, one, meant)) {
      for await (const rows of rowsOf(database, one, misplaced.get(0) ?? [])) {
        for (const row of rows) digest.add(one, row);
      }
      onPassed(passed);
    }
  }
}

/** How many rows of devices a database has. */
export async function countRows(database: Database): Promise<number> {
  let sum = 0;
  for (const { table } of deviceTables) {
    const [row] = await database.query<{ count: number }>(`SELECT count(*) AS count FROM ${table.name}`);
    sum += row?.count ?? 0;
  }
  return sum;
}
