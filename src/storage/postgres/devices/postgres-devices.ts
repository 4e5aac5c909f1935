import { type DeviceKey, deviceIdOf } from '../../../core/identity.ts';
import type { Authentication, DeviceStatus, FleetCounts } from '../../../domain/devices/device.ts';
import { matches } from '../../../domain/devices/device-filter.ts';
import type {
  CountStep,
  DeviceFilter,
  DeviceIndex,
  DeviceQuery,
  FoundDevices,
  Presence,
} from '../../../domain/devices/device-query.ts';
import { bucketInKey, bucketOf } from '../../../domain/devices/seen-bucket.ts';
import { ShardDevices } from '../../../domain/devices/shard-devices.ts';
import type { Database } from '../connection/database.ts';
import { QueryBatcher } from '../connection/query-batcher.ts';
import { device as deviceTable } from '../schema/tables.ts';
import type { Writer } from '../writes/writer.ts';
import {
  type CredentialsRow,
  credentialsColumns,
  credentialsOf,
  deviceStatusOfRow,
  nameKeyOf,
  type StatusRow,
  statusColumns,
} from './device-rows.ts';

/** A row of an index; columns beside the device are not read in all of them. */
type Entry = {
  device: DeviceKey;
  nameKey: Buffer | undefined;
  bucket: number;
  waitingSinceMs: number | null;
};

/** A range of index entries behind a position, as SQL. */
interface EntryRange {
  /** `FROM` and `WHERE` clauses for the alias `e`. */
  from: string;
  order: string;
  /** Parameters from $1 on. */
  values: unknown[];
  positionOf(entry: Entry): string;
}

/** Sort behind every device id, and in names behind every byte of UTF-8. */
const afterIds = '~';
const afterNames = Buffer.of(0xff);
const deviceIdLength = 10;
const bucketBytes = 4;
const timeBytes = 6;
/** Fleet condition, phrased as the index expression. */
const fleet = 'left(e.device, 8) COLLATE "C" = $1';

export function entriesOf(
  by: DeviceIndex,
  filter: DeviceFilter & Pick<DeviceQuery, 'isReversed'>,
  after: string,
): EntryRange {
  const { fleetId, idPrefix = '' } = filter;
  // Ids after the position, of those with the prefix.
  const ids = [fleetId + textOf(after), fleetId + textOf(idPrefix), fleetId + textOf(idPrefix) + afterIds];
  switch (by) {
    case 'tag':
      return {
        from: 'device_tag e WHERE e.fleet_id = $1 AND e.tag = $2 AND e.device > $3 AND e.device >= $4 AND e.device < $5',
        order: 'e.device',
        values: [fleetId, textOf(filter.tags?.[0] ?? ''), ...ids],
        positionOf: idPosition,
      };
    case 'name':
      return namesOf(filter, after);
    case 'seen':
      return seenOf(filter, after);
    case 'waiting':
      return waitingOf(filter, after);
    default:
      return {
        from: `device e WHERE ${by === 'disabled' ? 'NOT e.enabled AND' : ''} e.device > $1 AND e.device >= $2 AND e.device < $3`,
        order: 'e.device',
        values: ids,
        positionOf: idPosition,
      };
  }
}

function idPosition({ device }: Entry): string {
  return deviceIdOf(device);
}

/** Position: the beginning of the name, a zero byte, the device id. */
function namesOf({ fleetId, namePrefix = '' }: DeviceFilter, after: string): EntryRange {
  const first = nameKeyOf(namePrefix);
  const idAt = after.length - deviceIdLength;
  const isWhole = idAt > 0 && after[idAt - 1] === '\0';
  const name = isWhole ? after.slice(0, idAt - 1) : after;
  return {
    from: `device e WHERE ${fleet} AND e.name_key >= $2 AND e.name_key < $3 AND (e.name_key, e.device) > ($4, $5)`,
    order: 'e.name_key, e.device',
    values: [
      fleetId,
      first,
      Buffer.concat([first, afterNames]),
      Buffer.from(name, 'latin1'),
      isWhole ? fleetId + textOf(after.slice(idAt)) : '',
    ],
    positionOf: ({ device, nameKey }) => `${nameKey?.toString('latin1') ?? ''}\0${deviceIdOf(device)}`,
  };
}

/** Position: the bucket in four bytes, the device id. */
function seenOf(
  { fleetId, seenAfterMs, seenBeforeMs, isReversed = false }: DeviceFilter & Pick<DeviceQuery, 'isReversed'>,
  after: string,
): EntryRange {
  const [first, last] = [bucketOf(seenAfterMs), bucketOf(seenBeforeMs ?? Number.MAX_SAFE_INTEGER)];
  const isPosition = after.length >= bucketBytes;
  const [is, direction, beginning] = isReversed ? ['<', 'DESC', last + 1] : ['>', 'ASC', -1];
  return {
    from: `activity e WHERE ${fleet} AND e.bucket >= $2 AND e.bucket <= $3 AND (e.bucket, e.device) ${is} ($4, $5)`,
    order: `e.bucket ${direction}, e.device ${direction}`,
    values: [
      fleetId,
      first,
      last,
      isPosition ? Buffer.from(after, 'latin1').readUInt32BE() : beginning,
      isPosition ? fleetId + textOf(after.slice(bucketBytes)) : '',
    ],
    positionOf: ({ device, bucket }) => bucketInKey(bucket) + deviceIdOf(device),
  };
}

/** Position: the time in six bytes, the device id. */
function waitingOf({ fleetId, waitingBeforeMs = 0 }: DeviceFilter, after: string): EntryRange {
  const isPosition = after.length >= timeBytes;
  return {
    from: `mailbox e WHERE ${fleet} AND e.waiting_since_ms < $2 AND (e.waiting_since_ms, e.device) > ($3, $4)`,
    order: 'e.waiting_since_ms, e.device',
    values: [
      fleetId,
      waitingBeforeMs,
      isPosition ? Buffer.from(after, 'latin1').readUIntBE(0, timeBytes) : -1,
      isPosition ? fleetId + textOf(after.slice(timeBytes)) : '',
    ],
    positionOf: ({ device, waitingSinceMs: sinceMs }) => timeInPosition(sinceMs ?? 0) + deviceIdOf(device),
  };
}

function timeInPosition(timeMs: number): string {
  const bytes = Buffer.allocUnsafe(timeBytes);
  bytes.writeUIntBE(timeMs, 0, timeBytes);
  return bytes.toString('latin1');
}

/** Cuts text at a zero byte: a position is untrusted, and PostgreSQL text cannot hold one. */
function textOf(text: string): string {
  const end = text.indexOf('\0');
  return end < 0 ? text : text.slice(0, end);
}

/** Statements of one kind in flight; keys that come meanwhile share the next one. */
const underWayMax = 2;
/** Digits of a bucket, or of a time in milliseconds. */
const orderDigits = 15;

/**
 * Includes the mailbox size, which heartbeats and polls need: a separate statement for it cost more than all of this
 * one.
 */
const credentials = `
  SELECT ${credentialsColumns}, m.size
  FROM device t JOIN mailbox m ON m.device = t.device WHERE t.device = ANY($1::text[])`;
const statuses = `
  SELECT ${statusColumns} FROM device t
  JOIN mailbox m ON m.device = t.device JOIN activity a ON a.device = t.device WHERE t.device = ANY($1::text[])`;
const counts = 'SELECT devices, disabled FROM fleet_count WHERE fleet_id = $1';

type AuthenticationRow = CredentialsRow & { size: number };

/**
 * The devices of a shard on PostgreSQL. Reads of many devices in one turn of the event loop share one statement, and
 * nothing is cached.
 */
export class PostgresDevices extends ShardDevices {
  readonly #database: Database;
  readonly #presence: Presence;
  readonly #credentials: QueryBatcher<DeviceKey, Authentication | undefined>;
  readonly #statuses: QueryBatcher<DeviceKey, DeviceStatus | undefined>;

  constructor(database: Database, presence: Presence, writer: Writer) {
    super(presence, writer);
    this.#database = database;
    this.#presence = presence;
    const batcher = <R extends { device: DeviceKey }, V>(text: string, read: (row: R | undefined) => V) =>
      new QueryBatcher<DeviceKey, V>(
        async (devices) => {
          const rows = await database.query<R>(text, [[...new Set(devices)]]);
          const found = new Map(deviceTable.read(rows).map((row) => [row.device, row]));
          return devices.map((device) => read(found.get(device)));
        },
        underWayMax,
        database.timeoutMilliseconds,
      );
    this.#credentials = batcher(
      credentials,
      (row: AuthenticationRow | undefined) => row && { ...credentialsOf(row), mailboxSize: row.size },
    );
    this.#statuses = batcher(statuses, (row: StatusRow | undefined) => row && deviceStatusOfRow(row));
  }

  changeToken(): undefined {}

  credentials(device: DeviceKey): Promise<Authentication | undefined> {
    return this.#credentials.add(device);
  }

  get(device: DeviceKey): Promise<DeviceStatus | undefined> {
    return this.#statuses.add(device);
  }

  async countEntries(by: DeviceIndex, filter: DeviceFilter, max: number): Promise<number> {
    if (by === 'connected') return Math.min(max, await this.#presence.connectedCount(filter.fleetId));
    const { from, values } = entriesOf(by, filter, '');
    const [row] = await this.#database.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM (SELECT 1 FROM ${from} LIMIT $${values.length + 1}) e`,
      [...values, max],
    );
    return row?.count ?? 0;
  }

  async countStep(
    by: 'seen' | 'waiting',
    filter: DeviceFilter,
    after: string,
    scanMax: number,
  ): Promise<CountStep> {
    const { from, order, values, positionOf } = entriesOf(by, filter, after);
    const column = by === 'seen' ? 'bucket' : 'waiting_since_ms';
    // All entries of the waiting index in the range match.
    const matching = by === 'seen' ? `e.last_seen_ms >= $${values.length + 2}` : 'true';
    const matched = by === 'seen' ? [filter.seenAfterMs ?? 0] : [];
    const [row] = await this.#database.query<{ scanned: number; matching: number; last: string | null }>(
      `SELECT count(*)::int AS scanned, count(*) FILTER (WHERE ${matching})::int AS matching,
          max((lpad(e.${column}::text, ${orderDigits}, '0') || e.device) COLLATE "C") AS last
        FROM (SELECT * FROM ${from} ORDER BY ${order} LIMIT $${values.length + 1}) e`,
      [...values, scanMax, ...matched],
    );
    if (row === undefined || row.last === null) return { count: 0, reached: undefined };
    const { matching: count, scanned, last } = row;
    const at = Number(last.slice(0, orderDigits));
    const device = last.slice(orderDigits) as DeviceKey;
    const position = positionOf({ device, nameKey: undefined, bucket: at, waitingSinceMs: at });
    return { count, reached: scanned === scanMax ? position : undefined };
  }

  async fleetCounts(fleetId: string): Promise<FleetCounts> {
    const [row] = await this.#database.query<{ devices: number; disabled: number }>(counts, [fleetId]);
    return row ?? { devices: 0, disabled: 0 };
  }

  ids(fleetId: string, after: string, limit: number): Promise<string[]> {
    return this.#ids('id', { fleetId }, after, limit);
  }

  idsWithTag(fleetId: string, tag: string, after: string, limit: number): Promise<string[]> {
    return this.#ids('tag', { fleetId, tags: [tag] }, after, limit);
  }

  protected async search(query: DeviceQuery): Promise<FoundDevices> {
    const { from, order, values, positionOf } = entriesOf(query.by, query, query.after);
    const rows = await this.#database.query<StatusRow & Entry>(
      `SELECT ${statusColumns}, a.bucket
        FROM (SELECT * FROM ${from} ORDER BY ${order} LIMIT $${values.length + 1}) e
        JOIN device t ON t.device = e.device JOIN mailbox m ON m.device = e.device
        JOIN activity a ON a.device = e.device ORDER BY ${order}`,
      [...values, query.scanMax],
    );
    const found = deviceTable
      .read(rows)
      .map((row) => ({ ...deviceStatusOfRow(row), position: positionOf(row) }));
    const reached = rows.length === query.scanMax ? found.at(-1)?.position : undefined;
    return { items: found.filter((one) => matches(one, query)), reached };
  }

  protected statusesOf(devices: readonly DeviceKey[]): Promise<(DeviceStatus | undefined)[]> {
    return Promise.all(devices.map((device) => this.get(device)));
  }

  async #ids(by: DeviceIndex, filter: DeviceFilter, after: string, limit: number): Promise<string[]> {
    const { from, order, values } = entriesOf(by, filter, after);
    const rows = await this.#database.query<{ device: DeviceKey }>(
      `SELECT e.device FROM ${from} ORDER BY ${order} LIMIT $${values.length + 1}`,
      [...values, limit],
    );
    return rows.map(({ device }) => deviceIdOf(device));
  }
}
