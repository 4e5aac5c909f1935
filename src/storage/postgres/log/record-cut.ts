import type { Session } from '../connection/database.ts';

/** Positions that one step of looking through the log covers: a transaction of some milliseconds. */
export const stepPositions = 5_000;

/** A record as retention counts it: payload, schema name and what the log of LMDB has besides. */
const recordBytes = 'length(r.payload) + length(r.schema) + 23';
const fleet = 'left(r.device, 8)';

const cut = `
  WITH looked AS (
    SELECT r.position, r.stored_at_ms, ${recordBytes} AS bytes FROM record r
    WHERE r.position >= $1 AND r.position < $2 AND r.stored_at_ms < $3 AND (${fleet} = ANY($4::text[])) = $5),
  summed AS (SELECT position, stored_at_ms, sum(bytes) OVER (ORDER BY position) - bytes AS before FROM looked),
  gone AS (
    DELETE FROM record r USING summed s
    WHERE r.position = s.position AND r.stored_at_ms = s.stored_at_ms AND s.before < $6::bigint
    RETURNING r.position, r.tableoid::regclass::text AS part, ${fleet} AS fleet_id, ${recordBytes} AS bytes),
  discounted AS (
    UPDATE record_bytes t SET bytes = t.bytes - g.bytes
    FROM (SELECT part, fleet_id, sum(bytes) AS bytes FROM gone WHERE position < $7::bigint GROUP BY 1, 2) g
    WHERE t.fleet_id = g.fleet_id AND t.part = g.part)
  SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM gone`;
const count = `
  INSERT INTO record_bytes AS t (fleet_id, part, bytes)
  SELECT ${fleet}, r.tableoid::regclass::text, sum(${recordBytes}) FROM record r
  WHERE r.position >= $1 AND r.position < $2 AND ${fleet} = ANY($3::text[]) GROUP BY 1, 2
  ON CONFLICT (fleet_id, part) DO UPDATE SET bytes = t.bytes + excluded.bytes`;
const bytes = 'SELECT fleet_id, sum(bytes)::bigint AS bytes FROM record_bytes GROUP BY fleet_id LIMIT 100000';

/** Which records of a range of positions go. */
export interface RecordCut {
  from: number;
  to: number;
  /** Those stored earlier; all where it is absent. */
  beforeMs?: number;
  /** Those of these fleets, or of all others. */
  fleetIds: readonly string[];
  isOthers: boolean;
  /** From the front until these are gone; all where it is absent. */
  bytesMax?: number;
  /** In front of that position, bytes are counted. */
  countedTo: number;
}

/** Removes records and takes them off what is counted. Answers how many bytes they were. */
export async function cutRecords(session: Session, given: RecordCut): Promise<number> {
  const { from, to, beforeMs, fleetIds, isOthers, bytesMax, countedTo } = given;
  const all = Number.MAX_SAFE_INTEGER;
  const [row] = await session.query<{ bytes: number }>(cut, [
    from,
    to,
    beforeMs ?? all,
    fleetIds,
    !isOthers,
    bytesMax ?? all,
    countedTo,
  ]);
  return row?.bytes ?? 0;
}

/** Adds the records of these fleets in a range of positions to what is counted. */
export function countRecords(session: Session, from: number, to: number, fleetIds: readonly string[]): void {
  void session.query(count, [from, to, fleetIds]);
}

/** Bytes of limited fleets' records, as last counted. */
export async function countedBytes(session: Session): Promise<ReadonlyMap<string, number>> {
  const rows = await session.query<{ fleet_id: string; bytes: number }>(bytes);
  return new Map(rows.map((row) => [row.fleet_id, row.bytes]));
}
