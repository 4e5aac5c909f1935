import { OperatorError } from '../../core/errors.ts';
import { addToGroup } from '../../core/groups.ts';
import { type DeviceKey, deviceIdOf, deviceKeyLength, fleetIdOf } from '../../core/identity.ts';
import type { Database, Row } from '../../storage/postgres/connection/database.ts';
import type { DatabaseTable } from '../../storage/postgres/schema/table.ts';
import * as rows from '../../storage/postgres/schema/tables.ts';
import { RowDigest } from '../copy/row-digest.ts';

/** A table whose keys tell the device of a row. */
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
  // A scope begins with the device.
  deviceOf: ({ scope }) => scope.slice(0, deviceKeyLength) as DeviceKey,
};

/** Everything that moves with a device to another database: all but the log, and derived counts. */
const deviceTables: readonly DeviceTable[] = [
  of('devices', rows.device),
  of('tags', rows.deviceTag),
  of('last seen', rows.activity),
  of('queues', rows.deviceQueue),
  of('mailboxes', rows.mailbox),
  of('mails', rows.mail),
  of('delayed mails', rows.delayedMail),
  of('replaceable mails', rows.replaceable),
  of('receipts', rows.receipt),
  of('dead letters', rows.deadLetter),
  of('sent once', rows.dedupe),
  of('broadcast marks', rows.broadcastMark),
  idempotencyKeys,
];

/** Keys per statement, read without the rest of their rows. */
const keysMax = 5_000;
/** Rows per statement: each may have a payload. */
const rowsMax = 500;

/** Index of the database of a device, among `databases`. */
export type ShardOf = (device: DeviceKey, databases: number) => number;

/** Index of a database, and how its devices are placed. */
export interface Placement {
  index: number;
  /** Number of databases before and after the change. */
  from: number;
  to: number;
  shardOf: ShardOf;
}

interface Page {
  /** Number of keys read. */
  passed: number;
  /** Keys of misplaced rows, by the database they belong to. */
  misplaced: Map<number, Row[]>;
  last: unknown[];
}

/** True if the change has brought a device here. */
export function isNewHere({ index, from, shardOf }: Placement, device: DeviceKey): boolean {
  return shardOf(device, from) !== index;
}

/** Reads the keys of a table in order, from behind `after`, and finds the misplaced ones. */
async function* misplacedIn(
  database: Database,
  { table, deviceOf }: DeviceTable,
  elsewhere: (device: DeviceKey) => number | undefined,
  after?: readonly unknown[],
): AsyncGenerator<Page> {
  const { key, columns } = table.shape;
  const keys = key.map((name) => table.columnOf(name)).join(', ');
  const selected = key.map((name) => table.selected(name)).join(', ');
  const placeholders = key.map((column, index) => `$${index + 1}::${columns[column]?.type}`).join(', ');
  const select = (where: string): string =>
    `SELECT ${selected} FROM ${table.name} t ${where} ORDER BY ${keys} LIMIT ${keysMax}`;
  for (let last: readonly unknown[] | undefined = after; ; ) {
    const found: Row[] = await database.query<Row>(
      select(last === undefined ? '' : `WHERE (${keys}) > (${placeholders})`),
      last,
    );
    const end = found.at(-1);
    if (end === undefined) return;
    const reached = key.map((column) => end[column]);
    last = reached;
    const misplaced = new Map<number, Row[]>();
    for (const row of found) {
      const shard = elsewhere(deviceOf(row));
      if (shard !== undefined) addToGroup(misplaced, shard, row);
    }
    yield { passed: found.length, misplaced, last: reached };
  }
}

/** Reads whole rows by key, in batches. */
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
  /** The last key copied of a table. */
  doneOf(kind: string): readonly unknown[] | undefined;
  /** Called when everything up to that key is copied durably. */
  onPage(kind: string, last: readonly unknown[], passed: number): Promise<void>;
}

/**
 * Copies the rows of misplaced devices to their new database. The source keeps its rows, and copying them again changes
 * nothing. @throws OperatorError for a device that never belonged here, ApiError unavailable
 */
export async function copyMisplaced(source: Database, options: CopyOptions): Promise<void> {
  const { placement, databases, doneOf, onPage } = options;
  const elsewhere = elsewhereAfter(placement);
  for (const one of deviceTables) {
    for await (const page of misplacedIn(source, one, elsewhere, doneOf(one.kind))) {
      for (const [shard, keys] of page.misplaced) {
        const target = databases[shard];
        if (target === undefined) throw new Error('a device belongs to a database that does not exist');
        for await (const rows of rowsOf(source, one, keys)) {
          await target.query(one.table.put, one.table.rowsOf(rows));
        }
      }
      await onPage(one.kind, page.last, page.passed);
    }
  }
}

/** New database of a device; undefined if it stays here. @throws OperatorError */
function elsewhereAfter({ index, from, to, shardOf }: Placement): (device: DeviceKey) => number | undefined {
  return (device) => {
    if (shardOf(device, from) !== index) {
      throw new OperatorError(
        `Device ${deviceIdOf(device)} of fleet ${fleetIdOf(device)} is where it does not belong. Name all databases, in the order of store.shards.`,
      );
    }
    const shard = shardOf(device, to);
    return shard === index ? undefined : shard;
  };
}

/** Removes the rows of misplaced devices; idempotent. */
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

/** Adds the rows of these devices to the digest of each kind. */
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

/** Number of rows in all tables of devices. */
export async function countRows(database: Database): Promise<number> {
  let sum = 0;
  for (const { table } of deviceTables) {
    const [row] = await database.query<{ count: number }>(`SELECT count(*) AS count FROM ${table.name}`);
    sum += row?.count ?? 0;
  }
  return sum;
}
