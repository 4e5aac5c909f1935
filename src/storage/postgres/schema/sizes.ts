import type { Database } from '../connection/database.ts';

/** Mails are counted up to this; beyond, the engine's estimate is used. */
const countedMax = 10_000;

/** Sizes of a database, as the engine counts them: cheap, and approximate for large ones. */
export interface DatabaseSizes {
  bytes: number;
  logBytes: number;
  devices: number;
  /** Devices with open event streams, on any node. */
  connected: number;
  mails: number;
}

const sizes = `
  SELECT
    pg_database_size(current_database()) AS "bytes",
    (SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint FROM pg_inherits
     WHERE inhparent = 'record'::regclass) AS "logBytes",
    (SELECT coalesce(sum(devices), 0)::bigint FROM fleet_count) AS "devices",
    (SELECT count(DISTINCT device) FROM stream) AS "connected",
    (SELECT CASE WHEN few.mails < ${countedMax} THEN few.mails ELSE greatest(few.mails, reltuples::bigint) END
     FROM pg_class, (SELECT count(*) AS mails FROM (SELECT 1 FROM mail LIMIT ${countedMax}) m) few
     WHERE oid = 'mail'::regclass) AS "mails"`;
const bytesOfFleets = 'SELECT fleet_id, sum(bytes)::bigint AS bytes FROM record_bytes GROUP BY fleet_id';

const mailBytesOfFleets = 'SELECT fleet_id, bytes FROM mail_bytes WHERE bytes > 0 LIMIT 1000000';

/** @throws ApiError unavailable */
export async function databaseSizesOf(database: Database): Promise<DatabaseSizes> {
  const [row] = await database.query<{ [K in keyof DatabaseSizes]: number }>(sizes);
  return row ?? { bytes: 0, logBytes: 0, devices: 0, connected: 0, mails: 0 };
}

/** Record bytes of limited fleets, as last counted. @throws ApiError unavailable */
export async function logBytesOf(database: Database): Promise<Map<string, number>> {
  return byFleet(await database.query(bytesOfFleets));
}

/** Bytes of the waiting mail of fleets. @throws ApiError unavailable */
export async function mailBytesInDatabase(database: Database): Promise<Map<string, number>> {
  return byFleet(await database.query(mailBytesOfFleets));
}

function byFleet(rows: readonly { fleet_id: string; bytes: number }[]): Map<string, number> {
  return new Map(rows.map(({ fleet_id, bytes }) => [fleet_id, bytes]));
}
