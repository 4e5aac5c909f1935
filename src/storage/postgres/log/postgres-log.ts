import type { DeviceKey } from '../../../core/identity.ts';
import { copyUuid } from '../../../core/uuid.ts';
import {
  type DevicePage,
  type DeviceSpan,
  type Ingest,
  type IngestOutcome,
  type LogPage,
  logRecordBytes,
  type StoredRecord,
} from '../../../domain/records/record.ts';
import type { ShardLog } from '../../../domain/records/shard-log.ts';
import type { Database } from '../connection/database.ts';
import { QueryBatcher } from '../connection/query-batcher.ts';
import type { RecordRow } from '../schema/tables.ts';
import type { Writer } from '../writes/writer.ts';

/** Limits of a page; a single record may be larger. */
const pageRecordsMax = 500;
const pageBytesMax = 1024 * 1024;
/** Of one device's records more are read at once, since a chart has thousands: the round trips are what it waits for. */
const devicePageRecordsMax = 2_000;

/** Records of the log's order or its reverse: as many as fit into a page, but at least one. */
function pageOf(condition: string, order: 'ASC' | 'DESC', limit: string): string {
  return `
  SELECT * FROM (
    SELECT *, sum(length(payload)) OVER (ORDER BY position ${order}) AS bytes FROM (
      SELECT position, stored_at_ms, id, device, kind, schema, payload, own_at_ms, recorded_at_ms, mail_id FROM record
      WHERE ${condition} ORDER BY position ${order} LIMIT ${limit}) p) r
  WHERE bytes <= ${pageBytesMax} OR bytes = length(payload)
  ORDER BY position`;
}

const page = pageOf('position >= $1', 'ASC', `${pageRecordsMax}`);
const pageBefore = pageOf('position < $1', 'DESC', `${pageRecordsMax}`);
const ofDevice = 'device = $1 AND position >= $2 AND position < $3';
const devicePage = pageOf(ofDevice, 'ASC', '$4');
const devicePageBefore = pageOf(ofDevice, 'DESC', '$4');
const end = 'SELECT next FROM record_end LIMIT 1';
const front = 'SELECT position FROM record ORDER BY position LIMIT 1';
const reorderedUntil = `SELECT number FROM value WHERE name = 'moved'`;
const timeFrom = 'SELECT stored_at_ms FROM record WHERE position >= $1 ORDER BY position LIMIT 1';

/**
 * The log of a shard on PostgreSQL. A record is visible only when all before it are: a writer locks the end of the log until its commit.
 */
export class PostgresLog implements ShardLog {
  readonly #database: Database;
  readonly #writer: Writer;
  readonly #end: QueryBatcher<undefined, number>;

  constructor(database: Database, writer: Writer) {
    this.#database = database;
    this.#writer = writer;
    this.#end = new QueryBatcher(
      async (calls) => {
        const [row] = await database.query<{ next: number }>(end);
        return calls.map(() => row?.next ?? 0);
      },
      1,
      database.timeoutMilliseconds,
    );
  }

  async read(from: number): Promise<LogPage> {
    const records = (await this.#database.query<RecordRow>(page, [from])).map(recordOf);
    const last = records.at(-1);
    return { records, next: last === undefined ? from : last.position + 1, damaged: false };
  }

  async readBefore(before: number): Promise<LogPage> {
    const records = (await this.#database.query<RecordRow>(pageBefore, [before])).map(recordOf);
    return { records, next: records[0]?.position ?? before, damaged: false };
  }

  async ofDevice(
    device: DeviceKey,
    { from, to, isNewestFirst, recordsMax }: DeviceSpan,
  ): Promise<DevicePage> {
    const text = isNewestFirst ? devicePageBefore : devicePage;
    const rows = await this.#database.query<RecordRow>(text, [
      device,
      from,
      // Bounds may be infinite.
      Math.min(to, Number.MAX_SAFE_INTEGER),
      Math.min(recordsMax, devicePageRecordsMax),
    ]);
    const records = rows.map(recordOf);
    if (isNewestFirst) return { records: records.reverse(), next: records.at(-1)?.position ?? from };
    const last = records.at(-1);
    return { records, next: last === undefined ? to : last.position + 1 };
  }

  /** Batched, since every action asks for it in the same turn. */
  end(): Promise<number> {
    return this.#end.add(undefined);
  }

  /** Position of the first record; the end of the log if there is none. */
  async front(): Promise<number> {
    const [row] = await this.#database.query<{ position: number }>(front);
    return row?.position ?? this.end();
  }

  /** Binary search: times only grow with positions. */
  async positionAt(timeMs: number): Promise<number> {
    let [from, to] = await Promise.all([this.front(), this.end()]);
    while (from < to) {
      const middle = Math.floor((from + to) / 2);
      const atMs = await this.timeAt(middle);
      if (atMs === undefined || atMs >= timeMs) to = middle;
      else from = middle + 1;
    }
    return from;
  }

  async timeAt(position: number): Promise<number | undefined> {
    const [row] = await this.#database.query<{ stored_at_ms: number }>(timeFrom, [position]);
    return row?.stored_at_ms;
  }

  /** Relocated records exist only in a copy of a data folder that once had more shards. */
  async reorderedUntil(): Promise<number> {
    const [row] = await this.#database.query<{ number: number }>(reorderedUntil);
    return row?.number ?? 0;
  }

  append(ingest: Ingest): Promise<IngestOutcome> {
    // The caller may reuse the payload when this call returns.
    const copy = { ...ingest, payload: Buffer.from(ingest.payload) };
    return this.#writer.write('ingest', copy, logRecordBytes(ingest));
  }
}

function recordOf({
  stored_at_ms,
  own_at_ms,
  recorded_at_ms,
  mail_id,
  position,
  id,
  device,
  kind,
  schema,
  payload,
}: RecordRow): StoredRecord {
  return {
    position,
    id: copyUuid(id),
    device,
    kind,
    schema,
    payload,
    ...(recorded_at_ms !== null && { recordedAtMs: recorded_at_ms }),
    ...(mail_id !== null && { mailId: copyUuid(mail_id) }),
    storedAtMs: own_at_ms ?? stored_at_ms,
    isRelocated: own_at_ms !== null,
  };
}
