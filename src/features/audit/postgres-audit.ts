import { SingleFlight, sleep } from '../../core/async.ts';
import { isUnavailable } from '../../core/errors.ts';
import type { Log } from '../../core/telemetry/log.ts';
import {
  type AuditBook,
  type AuditEvent,
  type AuditOutcome,
  auditBooks,
  type BegunEntry,
} from '../../domain/audit-log.ts';
import { retryConflicts } from '../../storage/postgres/connection/conflict-retry.ts';
import type { Database } from '../../storage/postgres/connection/database.ts';
import { clockMs } from '../../storage/postgres/connection/database-time.ts';
import { QueryBatcher } from '../../storage/postgres/connection/query-batcher.ts';
import { type AuditContent, begunContent, isContent, ownerOfEvent, withOutcome } from './audit-entry.ts';
import type { AuditConfig } from './config.ts';
import { chunkEntries, type NumberedEntry, StoredAudit } from './stored-audit.ts';

/**
 * The number of entries each owner may keep, so that all together have at most `max` and owners with fewer keep all:
 * what those leave is shared equally by the others.
 */
export function fairLevel(counts: readonly number[], max: number): number {
  const ascending = counts.toSorted((one, other) => one - other);
  let left = max;
  for (const [index, count] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index));
    if (count > share) return share;
    left -= count;
  }
  return max;
}

/** Maximum outcomes per node that wait while the database is unavailable; further ones are lost. */
const lateMax = 1_000;
const lateAgainMilliseconds = 1_000;
/** Entries removed per statement. */
const trimmedMax = 1_000;
/**
 * A node checks the limit of a book each time it has added this share of it, or this many entries if that is fewer;
 * each node may exceed the limit by as much.
 */
const overshare = 0.01;
const overMax = 1_000;

/** Stores outcomes of entries begun before, then adds new entries, in order. */
const write = `
  WITH ended AS (
    UPDATE audit SET entry = k.entry FROM unnest($1::bigint[], $2::text[]) AS k (number, entry)
    WHERE audit.number = k.number)
  INSERT INTO audit (number, book, owner, at_ms, entry)
  SELECT nextval('audit_number'), k.book, k.owner, ${clockMs}, k.entry
  FROM unnest($3::smallint[], $4::text[], $5::text[]) WITH ORDINALITY AS k (book, owner, entry, ordinal)
  ORDER BY k.ordinal
  RETURNING number, at_ms`;
const columns = 'SELECT number, book, owner, at_ms, entry FROM audit';
const readNewer = `${columns} WHERE number > $1 ORDER BY number LIMIT ${chunkEntries}`;
const readOlder = `${columns} WHERE number < $1 ORDER BY number DESC LIMIT ${chunkEntries}`;
const newestNumber = 'SELECT coalesce(max(number), 0) AS number FROM audit';
const counted = 'SELECT owner, count(*) AS entries FROM audit WHERE book = $1 GROUP BY owner';
/**
 * Removes the oldest entries of these owners beyond the level. Skips locked rows: waiting could block, and be blocked
 * by, a node that writes outcomes.
 */
const trim = `
  WITH removed AS (
    DELETE FROM audit WHERE number IN (
      SELECT oldest.number FROM unnest($2::text[]) AS k (owner)
      CROSS JOIN LATERAL (
        SELECT number FROM audit WHERE book = $1 AND owner = k.owner AND number <= (
          SELECT number FROM audit WHERE book = $1 AND owner = k.owner ORDER BY number DESC OFFSET $3 LIMIT 1)
        ORDER BY number LIMIT ${trimmedMax} FOR UPDATE SKIP LOCKED) AS oldest
      LIMIT ${trimmedMax})
    RETURNING number)
  SELECT count(*) AS trimmed FROM removed`;

/** A new entry or, with a number, one that now has its outcome. */
interface Write {
  number: number | undefined;
  book: AuditBook;
  owner: string;
  content: AuditContent;
}

/** Number and time that the database assigned to a new entry. */
type Assigned = { number: number; at_ms: number };

/**
 * The audit log of all nodes, in their first database. As on one machine, a change has its entry before it happens and
 * its outcome before it is answered. Concurrent writes of a node share one statement. Numbers ascend in the order
 * entries are begun, and times are the database's.
 */
export class PostgresAudit extends StoredAudit {
  readonly #database: Database;
  readonly #writes: QueryBatcher<Write, Assigned | undefined>;
  readonly #waiting = new Set<Promise<unknown>>();
  #late: Write[] = [];
  readonly #retrying = new SingleFlight(() => this.#retry());
  readonly #closing = new AbortController();
  /** Entries of each book that this node has added since it checked the limit; unknown at first, so a check is due. */
  readonly #added = auditBooks.map(() => overMax);
  readonly #trimming = new SingleFlight(() => this.#trim());

  /** `database`: closed by its owner. */
  constructor(database: Database, config: AuditConfig, log: Log) {
    super(config, log);
    this.#database = database;
    this.#writes = new QueryBatcher((writes) => this.#write(writes), 1, this.#database.timeoutMilliseconds);
  }

  async begin(book: AuditBook, event: AuditEvent): Promise<BegunEntry> {
    const content = begunContent(event);
    const owner = ownerOfEvent(event);
    const assigned = await this.#put({ number: undefined, book, owner, content });
    if (assigned === undefined) throw new Error('the database assigned no number to an audit entry');
    return { entry: { ...content, number: assigned.number, book, owner, timeMs: assigned.at_ms } };
  }

  async end({ entry }: BegunEntry, outcome: AuditOutcome): Promise<void> {
    const { number, book, owner, timeMs: _, ...content } = withOutcome(entry, outcome);
    await this.#putOrWait({ number, book, owner, content });
    if (this.#late.length > 0) void this.#retrying.run();
  }

  protected keep(book: AuditBook, owner: string, content: AuditContent): Promise<void> {
    return this.#putOrWait({ number: undefined, book, owner, content });
  }

  protected async newest(): Promise<number> {
    const [row] = await this.#database.query<{ number: number }>(newestNumber);
    return row?.number ?? 0;
  }

  /** Settles when everything is written or lost; what waits is tried once more. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#waiting);
    await this.#retrying.settled();
    await this.#trimming.settled();
  }

  async #put(write: Write): Promise<Assigned | undefined> {
    const putting = this.#writes.add(write);
    this.#waiting.add(putting);
    try {
      return await putting;
    } finally {
      this.#waiting.delete(putting);
    }
  }

  /**
   * Writes an entry for what has already happened. Only an outcome may wait for the database; a new entry would get the
   * wrong time.
   */
  async #putOrWait(write: Write): Promise<void> {
    try {
      await this.#put(write);
    } catch (error) {
      const mayWait = write.number !== undefined && isUnavailable(error) && !this.#closing.signal.aborted;
      if (mayWait && this.#late.length < lateMax) {
        this.#late.push(write);
        return;
      }
      this.noteLost(error);
    }
  }

  /** Retries until the database is back or this node stops. */
  async #retry(): Promise<void> {
    const { signal } = this.#closing;
    while (this.#late.length > 0) {
      await sleep(lateAgainMilliseconds, signal);
      await Promise.all(this.#late.splice(0).map((write) => this.#putOrWait(write)));
    }
  }

  async #write(writes: readonly Write[]): Promise<(Assigned | undefined)[]> {
    const added = writes.filter(({ number }) => number === undefined);
    const ended = writes.filter(({ number }) => number !== undefined);
    const text = ({ content }: Write): string => JSON.stringify(content);
    const values = [
      ended.map(({ number }) => number),
      ended.map(text),
      added.map(({ book }) => auditBooks.indexOf(book)),
      added.map(({ owner }) => owner),
      added.map(text),
    ];
    const assigned = await retryConflicts(() => this.#database.query<Assigned>(write, values));
    assigned.sort((one, other) => one.number - other.number);
    for (const { book } of added) this.#note(auditBooks.indexOf(book));
    let next = 0;
    return writes.map(({ number }) => (number === undefined ? assigned[next++] : undefined));
  }

  #note(book: number): void {
    this.#added[book] = (this.#added[book] ?? 0) + 1;
    if (this.#isDue(book)) void this.#trimming.run();
  }

  #isDue(book: number): boolean {
    return (
      (this.#added[book] ?? 0) >= Math.min(overMax, this.config.settings.current.auditEntriesMax * overshare)
    );
  }

  async #trim(): Promise<void> {
    for (;;) {
      const book = [...auditBooks.keys()].find((one) => this.#isDue(one));
      if (book === undefined) return;
      this.#added[book] = 0;
      try {
        await this.#trimBook(book);
      } catch (error) {
        this.log.warn({ err: error }, 'trimming the audit log failed; retrying when more is added');
      }
    }
  }

  async #trimBook(book: number): Promise<void> {
    const { auditEntriesMax } = this.config.settings.current;
    const owners = await this.#database.query<{ owner: string; entries: number }>(counted, [book]);
    const counts = owners.map(({ entries }) => entries);
    const level = fairLevel(counts, auditEntriesMax);
    const over = owners.filter(({ entries }) => entries > level).map(({ owner }) => owner);
    if (over.length === 0) return;
    for (let trimmed = trimmedMax; trimmed === trimmedMax; ) {
      const [row] = await this.#database.query<{ trimmed: number }>(trim, [book, over, level]);
      trimmed = row?.trimmed ?? 0;
    }
  }

  protected async read(from: number, reverse: boolean): Promise<NumberedEntry[]> {
    const rows = await this.#database.query<Assigned & { book: number; owner: string; entry: string }>(
      reverse ? readOlder : readNewer,
      [from],
    );
    return rows.map(({ number, book, owner, at_ms: timeMs, entry }) => {
      const content = this.#decode(number, entry);
      const name = auditBooks[book];
      const isWhole = content !== undefined && name !== undefined;
      return { number, entry: isWhole ? { ...content, number, book: name, owner, timeMs } : undefined };
    });
  }

  #decode(number: number, text: string): AuditContent | undefined {
    try {
      const content: unknown = JSON.parse(text);
      if (isContent(content)) return content;
    } catch {
      // Logged below.
    }
    this.noteDamage({ number });
    return undefined;
  }
}
