import { groupBy } from '../../../core/groups.ts';
import {
  fingerprintOf,
  type LogRetention,
  type RetentionSource,
  ttlsOf,
} from '../../../domain/log-retention.ts';
import type { Database, Session, Transaction } from '../connection/database.ts';
import { databaseTimeMs } from '../connection/database-time.ts';
import {
  dropPartition,
  indexPartition,
  makePartitions,
  nameOfPart,
  type PartitionSpan,
  partitionsOf,
  recordPartitions,
  unindexedRecordParts,
} from '../schema/partitions.ts';
import type { PostgresLog } from './postgres-log.ts';

/** Positions per step: a transaction of some milliseconds. */
const stepPositions = 5_000;

/** Size of a record for retention: payload, schema name, and the overhead of LMDB's log. */
const recordBytes =
  'length(r.payload) + length(r.schema) + 23 + CASE WHEN r.recorded_at_ms IS NULL THEN 0 ELSE 6 END + CASE WHEN r.mail_id IS NULL THEN 0 ELSE 16 END';
const fleet = 'left(r.device, 8)';

const cut = `
  WITH candidates AS (
    SELECT r.position, r.stored_at_ms, ${recordBytes} AS bytes FROM record r
    WHERE r.position >= $1 AND r.position < $2 AND r.stored_at_ms < $3 AND (${fleet} = ANY($4::text[])) = $5),
  summed AS (SELECT position, stored_at_ms, sum(bytes) OVER (ORDER BY position) - bytes AS before FROM candidates),
  removed AS (
    DELETE FROM record r USING summed s
    WHERE r.position = s.position AND r.stored_at_ms = s.stored_at_ms AND s.before < $6::bigint
    RETURNING r.position, r.tableoid::regclass::text AS part, ${fleet} AS fleet_id, ${recordBytes} AS bytes),
  discounted AS (
    UPDATE record_bytes t SET bytes = t.bytes - g.bytes
    FROM (SELECT part, fleet_id, sum(bytes) AS bytes FROM removed WHERE position < $7::bigint GROUP BY 1, 2) g
    WHERE t.fleet_id = g.fleet_id AND t.part = g.part)
  SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM removed`;
const count = `
  INSERT INTO record_bytes AS t (fleet_id, part, bytes)
  SELECT ${fleet}, r.tableoid::regclass::text, sum(${recordBytes}) FROM record r
  WHERE r.position >= $1 AND r.position < $2 AND ${fleet} = ANY($3::text[]) GROUP BY 1, 2
  ON CONFLICT (fleet_id, part) DO UPDATE SET bytes = t.bytes + excluded.bytes`;
const bytes = 'SELECT fleet_id, sum(bytes)::bigint AS bytes FROM record_bytes GROUP BY fleet_id LIMIT 100000';

/** Which records of a range of positions to remove. */
interface RecordCut {
  from: number;
  to: number;
  /** Only records stored before; all if absent. */
  beforeMs?: number;
  /** Only records of these fleets, or of all others. */
  fleetIds: readonly string[];
  isOthers: boolean;
  /** Stops after this many bytes from the front; all if absent. */
  bytesMax?: number;
  /** Bytes are counted up to this position. */
  countedTo: number;
}

/** Removes records, subtracts them from the counts, and returns their bytes. */
async function cutRecords(session: Session, range: RecordCut): Promise<number> {
  const { from, to, beforeMs, fleetIds, isOthers, bytesMax, countedTo } = range;
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

/** Adds the records of these fleets in a range of positions to the counts. */
function countRecords(session: Session, from: number, to: number, fleetIds: readonly string[]): void {
  void session.query(count, [from, to, fleetIds]);
}

/** Record bytes of limited fleets, as last counted. */
async function countedBytes(session: Session): Promise<ReadonlyMap<string, number>> {
  const rows = await session.query<{ fleet_id: string; bytes: number }>(bytes);
  return new Map(rows.map((row) => [row.fleet_id, row.bytes]));
}

/** Partitions per longest retention: partitions are dropped whole, so a record stays up to one partition longer. */
const partsPerLife = 16;
const partMsMin = 60_000;
const partsAhead = 2;
/** Maximum lag of the clock of a transaction in flight. */
const lagMs = 60_000;
/** Records not dropped with a partition by then are removed individually: those of fleets with a shorter retention. */
const lateness = 1 / 8;
/** A fleet over its limit is trimmed to this share of it. */
const limitShare = 15 / 16;

/** Only one node at a time walks the log; the number is unique among the locks of this program. */
const lock = 'SELECT pg_try_advisory_xact_lock(7310200702) AS is_ours';
const value = 'SELECT number FROM value WHERE name = $1';
const setValue = `
  INSERT INTO value (name, number) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET number = excluded.number`;
/** Changed rules restart all walks. */
const forgetRules = `DELETE FROM value WHERE name LIKE 'trim %' AND NOT starts_with(name, $1)`;
const logBytes = `
  SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint AS bytes FROM pg_inherits
  WHERE inhparent = to_regclass('record')`;

/**
 * Trims the log by age and size, in whole partitions where possible, else in small steps. Positions and ids stay. Runs
 * on every node; each continues where the last one stopped.
 */
export class RecordTrimmer {
  readonly #database: Database;
  readonly #reads: PostgresLog;
  readonly #source: RetentionSource;
  /** Begins of parts whose index was tried to be made. */
  readonly #unindexable = new Set<number>();

  constructor(database: Database, reads: PostgresLog, source: RetentionSource) {
    this.#database = database;
    this.#reads = reads;
    this.#source = source;
  }

  /** Creates the first partitions; must run before the first record is stored. */
  async prepare(): Promise<void> {
    await this.#makeParts(this.#source.retention(), await databaseTimeMs(this.#database));
  }

  /** Runs once a minute. @throws ApiError unavailable */
  async pass(): Promise<void> {
    const retention = this.#source.retention();
    const nowMs = await databaseTimeMs(this.#database);
    await this.#makeParts(retention, nowMs);
    await this.#dropParts(retention, nowMs);
    await this.#indexParts(nowMs);
    const rules = `trim ${fingerprintOf(retention)} `;
    const isOurs = await this.#step(async (transaction) => {
      const counted = await numberOf(transaction, `${rules}counted`);
      if (counted !== undefined) return;
      transaction.query(forgetRules, [rules]);
      transaction.query('DELETE FROM record_bytes');
      transaction.query(setValue, [`${rules}counted`, 0]);
    });
    if (!isOurs) return;
    await this.#count(rules, retention);
    await this.#cutLives(rules, retention, nowMs);
    await this.#cutFleets(rules, retention);
  }

  async #makeParts(retention: LogRetention, nowMs: number): Promise<void> {
    const partMs = Math.max(partMsMin, Math.ceil(longestMs(retention) / partsPerLife));
    const wanted = { fromMs: nowMs - lagMs, toMs: nowMs + partsAhead * partMs };
    await makePartitions(this.#database, recordPartitions, wanted, partMs);
  }

  /** Drops partitions in which every record has expired, and the oldest ones while the log is too large. */
  async #dropParts(retention: LogRetention, nowMs: number): Promise<void> {
    const overMs = nowMs - longestMs(retention);
    for (const part of await partitionsOf(this.#database, recordPartitions)) {
      const isOver = part.toMs <= overMs;
      if (!isOver && (part.toMs > nowMs - lagMs || !(await this.#isTooLarge(retention)))) return;
      await this.#drop(part);
    }
  }

  /** Indexes the parts from before there was the index, one a pass, the newest first. */
  async #indexParts(nowMs: number): Promise<void> {
    const parts = await unindexedRecordParts(this.#database);
    const next = parts.findLast(
      ({ fromMs, toMs }) => toMs <= nowMs - lagMs && !this.#unindexable.has(fromMs),
    );
    if (next === undefined) return;
    // If it takes too long, its records are found without: it is not tried with each pass.
    this.#unindexable.add(next.fromMs);
    await indexPartition(this.#database, next);
  }

  async #isTooLarge({ bytesMax }: LogRetention): Promise<boolean> {
    if (bytesMax === 0) return false;
    const [row] = await this.#database.query<{ bytes: number }>(logBytes);
    return (row?.bytes ?? 0) > bytesMax;
  }

  async #drop(part: PartitionSpan): Promise<void> {
    await dropPartition(this.#database, recordPartitions, part, (transaction) => {
      transaction.query('DELETE FROM record_bytes WHERE part = $1', [nameOfPart(recordPartitions, part)]);
    });
  }

  /** Counts what fleets with a limit have appended since the last pass. */
  async #count(rules: string, { fleets }: LogRetention): Promise<void> {
    const limited = [...fleets].flatMap(([fleetId, { bytesMax }]) =>
      bytesMax === undefined ? [] : [fleetId],
    );
    if (limited.length === 0) return;
    const end = await this.#reads.end();
    await this.#walk(`${rules}counted`, end, async (transaction, from, to) => {
      countRecords(transaction, from, to, limited);
      return true;
    });
  }

  async #cutLives(rules: string, retention: LogRetention, nowMs: number): Promise<void> {
    const lives = ttlsOf(retention);
    const groupOf = (ttlSeconds: number): number =>
      lives.findLast((life) => life >= ttlSeconds) ?? ttlSeconds;
    const own = new Map<string, number>();
    for (const [fleetId, { ttlSeconds }] of retention.fleets) {
      if (ttlSeconds !== undefined) own.set(fleetId, groupOf(ttlSeconds));
    }
    for (const [life, fleets] of groupBy(own, ([, life]) => life)) {
      const fleetIds = fleets.map(([fleetId]) => fleetId);
      await this.#cutLife(rules, `${life}`, nowMs - life * 1_000 * (1 + lateness), {
        fleetIds,
        isOthers: false,
      });
    }
    const overMs = nowMs - retention.ttlSeconds * 1_000 * (1 + lateness);
    await this.#cutLife(rules, 'others', overMs, { fleetIds: [...own.keys()], isOthers: true });
  }

  async #cutLife(
    rules: string,
    group: string,
    beforeMs: number,
    whose: Pick<RecordCut, 'fleetIds' | 'isOthers'>,
  ): Promise<void> {
    const end = await this.#reads.positionAt(beforeMs);
    await this.#walk(`${rules}life ${group}`, end, async (transaction, from, to) => {
      const countedTo = (await numberOf(transaction, `${rules}counted`)) ?? 0;
      await cutRecords(transaction, { from, to, beforeMs: Math.floor(beforeMs), ...whose, countedTo });
      return true;
    });
  }

  /** Fleets over their limit lose their oldest records, in each database its share of them. */
  async #cutFleets(rules: string, { fleets }: LogRetention): Promise<void> {
    const counted = await countedBytes(this.#database);
    for (const [fleetId, { bytesMax }] of fleets) {
      const own = counted.get(fleetId) ?? 0;
      if (bytesMax === undefined || own === 0) continue;
      const total = own + (this.#source.bytesElsewhere().get(fleetId) ?? 0);
      if (total <= bytesMax) continue;
      let excess = own - Math.floor((bytesMax * limitShare * own) / total);
      const end = (await this.#numberOf(`${rules}counted`)) ?? 0;
      await this.#walk(`${rules}front ${fleetId}`, end, async (transaction, from, to) => {
        const range = { from, to, fleetIds: [fleetId], isOthers: false, bytesMax: excess, countedTo: end };
        excess -= await cutRecords(transaction, range);
        return excess > 0;
      });
    }
  }

  /**
   * Walks in steps from the cursor `name` to `end`. Stops at a step that returns false, which the next walk repeats.
   */
  async #walk(
    name: string,
    end: number,
    visit: (transaction: Transaction, from: number, to: number) => Promise<boolean>,
  ): Promise<void> {
    const front = await this.#reads.front();
    for (let isOver = false; !isOver; ) {
      const isOurs = await this.#step(async (transaction) => {
        const from = Math.max((await numberOf(transaction, name)) ?? 0, front);
        const to = Math.min(from + stepPositions, end);
        isOver = from >= end || !(await visit(transaction, from, to));
        if (!isOver) transaction.query(setValue, [name, to]);
      });
      if (!isOurs) return;
    }
  }

  /** Runs in its own transaction, unless another node holds the lock. */
  #step(run: (transaction: Transaction) => Promise<void>): Promise<boolean> {
    return this.#database.transaction(async (transaction) => {
      const [row] = await transaction.query<{ is_ours: boolean }>(lock);
      const isOurs = row?.is_ours === true;
      if (isOurs) await run(transaction);
      await transaction.commit();
      return isOurs;
    });
  }

  #numberOf(name: string): Promise<number | undefined> {
    return numberOf(this.#database, name);
  }
}

function longestMs(retention: LogRetention): number {
  return (ttlsOf(retention)[0] ?? 0) * 1_000;
}

async function numberOf(session: Pick<Database, 'query'>, name: string): Promise<number | undefined> {
  const [row] = await session.query<{ number: number }>(value, [name]);
  return row?.number;
}
