import {
  fingerprintOf,
  type LogRetention,
  livesOf,
  type RetentionSource,
} from '../../../domain/log-retention.ts';
import type { Database, Session, Transaction } from '../connection/database.ts';
import { databaseTimeMs } from '../connection/database-time.ts';
import {
  dropPartition,
  makePartitions,
  nameOfPart,
  type PartitionSpan,
  partitionsOf,
  recordPartitions,
} from '../schema/partitions.ts';
import type { RecordReads } from './record-reads.ts';

/** Positions that one step of looking through the log covers: a transaction of some milliseconds. */
const stepPositions = 5_000;

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
interface RecordCut {
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
async function cutRecords(session: Session, given: RecordCut): Promise<number> {
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
function countRecords(session: Session, from: number, to: number, fleetIds: readonly string[]): void {
  void session.query(count, [from, to, fleetIds]);
}

/** Bytes of limited fleets' records, as last counted. */
async function countedBytes(session: Session): Promise<ReadonlyMap<string, number>> {
  const rows = await session.query<{ fleet_id: string; bytes: number }>(bytes);
  return new Map(rows.map((row) => [row.fleet_id, row.bytes]));
}

/** Of the longest life: whole parts go, so a record stays for up to one part longer. */
const partsPerLife = 16;
const partMsMin = 60_000;
const partsAhead = 2;
/** How late the clock of a transaction may be that is under way. */
const lagMs = 60_000;
/** What no part has taken along by then goes by itself: records of fleets that live shorter than others. */
const lateness = 1 / 8;
/** What a fleet has too much goes down to this share of its limit. */
const limitShare = 15 / 16;

/** One node at a time looks through the log; the number is no other lock's of this program. */
const lock = 'SELECT pg_try_advisory_xact_lock(7310200702) AS is_ours';
const value = 'SELECT number FROM value WHERE name = $1';
const setValue = `
  INSERT INTO value (name, number) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET number = excluded.number`;
/** By other rules, everything is looked at again. */
const forgetRules = `DELETE FROM value WHERE name LIKE 'trim %' AND NOT starts_with(name, $1)`;
const logBytes = `
  SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint AS bytes FROM pg_inherits
  WHERE inhparent = to_regclass('record')`;

/**
 * Removes from the log what has been there for too long or is too much, in whole parts of the table where it can,
 * else in small steps. Positions and ids stay. Every node does it; what one has done the next goes on from.
 */
export class RecordTrimmer {
  readonly #database: Database;
  readonly #reads: RecordReads;
  readonly #source: RetentionSource;

  constructor(database: Database, reads: RecordReads, source: RetentionSource) {
    this.#database = database;
    this.#reads = reads;
    this.#source = source;
  }

  /** Makes room for records to come: to be done before the first is stored. */
  async prepare(): Promise<void> {
    await this.#makeParts(this.#source.retention(), await databaseTimeMs(this.#database));
  }

  /** To be done once a minute. @throws ApiError unavailable */
  async pass(): Promise<void> {
    const retention = this.#source.retention();
    const nowMs = await databaseTimeMs(this.#database);
    await this.#makeParts(retention, nowMs);
    await this.#dropParts(retention, nowMs);
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

  /** Those that nobody's records may be in any more, and the oldest while the log is too large. */
  async #dropParts(retention: LogRetention, nowMs: number): Promise<void> {
    const overMs = nowMs - longestMs(retention);
    for (const part of await partitionsOf(this.#database, recordPartitions)) {
      const isOver = part.toMs <= overMs;
      if (!isOver && (part.toMs > nowMs - lagMs || !(await this.#isTooLarge(retention)))) return;
      await this.#drop(part);
    }
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

  /** What was appended since the last pass, of fleets that have a limit. */
  async #count(rules: string, { fleets }: LogRetention): Promise<void> {
    const limited = [...fleets].flatMap(([fleetId, { bytesMax }]) =>
      bytesMax === undefined ? [] : [fleetId],
    );
    if (limited.length === 0) return;
    const end = await this.#reads.logEnd();
    await this.#walk(`${rules}counted`, end, async (transaction, from, to) => {
      countRecords(transaction, from, to, limited);
      return true;
    });
  }

  async #cutLives(rules: string, retention: LogRetention, nowMs: number): Promise<void> {
    const lives = livesOf(retention);
    const groupOf = (ttlSeconds: number): number =>
      lives.findLast((life) => life >= ttlSeconds) ?? ttlSeconds;
    const own = new Map<string, number>();
    for (const [fleetId, { ttlSeconds }] of retention.fleets) {
      if (ttlSeconds !== undefined) own.set(fleetId, groupOf(ttlSeconds));
    }
    const groups = new Map<number, string[]>();
    for (const [fleetId, life] of own) groups.set(life, [...(groups.get(life) ?? []), fleetId]);
    for (const [life, fleetIds] of groups) {
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

  /** Fleets that have more than they may lose their oldest records, each database its share of them. */
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
        const given = { from, to, fleetIds: [fleetId], isOthers: false, bytesMax: excess, countedTo: end };
        excess -= await cutRecords(transaction, given);
        return excess > 0;
      });
    }
  }

  /**
   * Steps from where `name` stands to `end`. A step that answers false is where it ends, and is looked at again the
   * next time.
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

  /** In a transaction of its own, unless another node is at it. */
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
  return (livesOf(retention)[0] ?? 0) * 1_000;
}

async function numberOf(session: Pick<Database, 'query'>, name: string): Promise<number | undefined> {
  const [row] = await session.query<{ number: number }>(value, [name]);
  return row?.number;
}
