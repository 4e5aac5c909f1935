import type { Log } from '../../core/telemetry/log.ts';
import {
  type AuditBook,
  type AuditEntry,
  type AuditEvent,
  type AuditLog,
  type AuditOutcome,
  type AuditQuery,
  auditBooks,
  type BegunEntry,
} from '../../domain/audit-log.ts';
import type { Journal } from '../../storage/lmdb/environment/journal.ts';
import type { Table } from '../../storage/lmdb/environment/stored-tables.ts';
import { begunContent, ownerOfEvent, withOutcome } from './audit-entry.ts';
import {
  chunkEntries,
  type NumberedEntry,
  numberMax,
  RefusalLimit,
  readAll,
  readPage,
} from './audit-reading.ts';
import {
  type auditTables,
  keyOf,
  numberOf,
  ownedKeyOf,
  ownerOf,
  packEntry,
  unpackEntry,
} from './audit-records.ts';
import type { AuditConfig } from './config.ts';

/** Counts per owner, and the owner with the most. Each change takes constant time, whatever their number. */
export class OwnerCounts {
  readonly #countOf = new Map<string, number>();
  /** Owners by their count. */
  readonly #ownersOf = new Map<number, Set<string>>();
  #most = 0;
  #total = 0;

  get total(): number {
    return this.#total;
  }

  add(owner: string, amount = 1): void {
    this.#change(owner, amount);
  }

  /** Call only for what was added. */
  remove(owner: string): void {
    this.#change(owner, -1);
  }

  /** One of the owners with the most; undefined if all have none. */
  most(): string | undefined {
    const [first] = this.#ownersOf.get(this.#most) ?? [];
    return first;
  }

  #change(owner: string, by: number): void {
    const before = this.#countOf.get(owner) ?? 0;
    const count = before + by;
    this.#total += by;
    const peers = this.#ownersOf.get(before);
    if (peers?.delete(owner) && peers.size === 0) this.#ownersOf.delete(before);
    if (count === 0) this.#countOf.delete(owner);
    else {
      this.#countOf.set(owner, count);
      const others = this.#ownersOf.get(count) ?? new Set<string>();
      this.#ownersOf.set(count, others.add(owner));
    }
    // If the last owner with the most has one fewer, it still has the most, with any others of that count.
    if (count > this.#most || (before === this.#most && !this.#ownersOf.has(before))) this.#most = count;
  }
}

/** Entries removed with each addition after the limit was lowered. */
const trimmedMax = 100;

type AuditTable = (typeof auditTables)[number];
type AuditJournal = Pick<Journal<AuditTable>, 'commit' | 'refresh'> & { tables: Record<AuditTable, Table> };
const nothing = Buffer.alloc(0);

/**
 * The audit log, in the journal of the main thread. A change has its entry on disk before it happens, and its outcome
 * on disk before it is answered: no change is without an entry, whenever the server crashes. This costs each change two
 * commits, shared by all changes under way.
 */
export class Audit implements AuditLog {
  readonly #journal: AuditJournal;
  readonly #table: Table;
  readonly #owners: Table;
  readonly #config: AuditConfig;
  readonly #log: Log;
  #last = 0;
  /** Entry counts of each book. */
  #counts: OwnerCounts[] = [];
  /** Set when the counts may be wrong, as a transaction with additions and removals was rolled back. */
  #isStale = false;
  #lost = 0;
  readonly #refusals = new RefusalLimit();
  #isDamageLogged = false;

  /** `journal`: closed by its owner. */
  constructor(journal: AuditJournal, config: AuditConfig, log: Log) {
    this.#journal = journal;
    this.#table = journal.tables.audit;
    this.#owners = journal.tables.auditOwners;
    this.#config = config;
    this.#log = log;
    this.#count();
    for (const book of auditBooks.keys()) {
      const range = { start: keyOf(book, numberMax), end: keyOf(book, 0), reverse: true, limit: 1 };
      for (const key of this.#table.getKeys(range)) this.#last = Math.max(this.#last, numberOf(key));
    }
  }

  get lost(): number {
    return this.#lost;
  }

  async begin(book: AuditBook, event: AuditEvent): Promise<BegunEntry> {
    const entry = this.#newEntry(book, event, ownerOfEvent(event));
    await this.#commit(() => this.#add(entry));
    return { entry };
  }

  async end({ entry }: BegunEntry, outcome: AuditOutcome): Promise<void> {
    const ended = withOutcome(entry, outcome);
    await this.#write(() => {
      const key = keyOf(auditBooks.indexOf(entry.book), entry.number);
      // A trimmed entry would otherwise reappear, uncounted.
      if (this.#table.doesExist(key)) this.#table.putSync(key, packEntry(ended));
    });
  }

  note(event: AuditEvent, outcome: AuditOutcome): void {
    const entry = withOutcome(this.#newEntry('change', event, ownerOfEvent(event)), outcome);
    void this.#write(() => this.#add(entry));
  }

  refused(owner: string, event: AuditEvent, outcome: AuditOutcome): void {
    const omitted = this.#refusals.take(owner, this.#config.auditRefusalsPerMinuteMax);
    if (omitted === undefined) return;
    const entry = { ...withOutcome(this.#newEntry('refused', event, owner), outcome), omitted };
    void this.#write(() => this.#add(entry));
  }

  page(
    query: AuditQuery,
    after: number | undefined,
    limit: number,
  ): Promise<{ items: AuditEntry[]; next: string | null }> {
    return readPage((from, reverse) => this.#read(from, reverse), query, after, limit);
  }

  all(query: AuditQuery): AsyncGenerator<AuditEntry[]> {
    return readAll((from, reverse) => this.#read(from, reverse), query, this.#last);
  }

  #newEntry(book: AuditBook, event: AuditEvent, owner: string): AuditEntry {
    this.#last += 1;
    return { ...begunContent(event), number: this.#last, book, owner, timeMs: Date.now() };
  }

  async #commit(apply: () => void): Promise<void> {
    try {
      await this.#journal.commit(apply);
    } catch (error) {
      this.#isStale = true;
      throw error;
    }
  }

  /** Counts the entries on disk: jumps from owner to owner, and LMDB counts the entries of each. */
  #count(): void {
    this.#counts = [...auditBooks.keys()].map((book) => {
      const counts = new OwnerCounts();
      const end = keyOf(book + 1, 0);
      for (let start = keyOf(book, 0); ; ) {
        const [first] = [...this.#owners.getKeys({ start, end, limit: 1 })];
        if (first === undefined) return counts;
        const owner = ownerOf(first);
        const last = ownedKeyOf(book, owner, numberMax);
        counts.add(owner, this.#owners.getKeysCount({ start: first, end: last }));
        start = last;
      }
    });
    this.#isStale = false;
  }

  /** Call inside a write transaction. */
  #add(entry: AuditEntry): void {
    if (this.#isStale) this.#count();
    const { number, owner } = entry;
    const book = auditBooks.indexOf(entry.book);
    const counts = this.#counts[book];
    this.#table.putSync(keyOf(book, number), packEntry(entry));
    this.#owners.putSync(ownedKeyOf(book, owner, number), nothing);
    if (counts === undefined) return;
    counts.add(owner);
    const excess = counts.total - this.#config.auditEntriesMax;
    for (let removed = 0; removed < Math.min(excess, trimmedMax); removed += 1) this.#removeOne(book, counts);
  }

  /** Removes the oldest entry of the owner with the most. */
  #removeOne(book: number, counts: OwnerCounts): void {
    const owner = counts.most() ?? '';
    const range = { start: ownedKeyOf(book, owner, 0), end: ownedKeyOf(book, owner, numberMax), limit: 1 };
    const keys = [...this.#owners.getKeys(range)];
    // The counts were wrong: count again.
    this.#isStale = keys.length === 0;
    for (const key of keys) {
      this.#owners.removeSync(key);
      this.#table.removeSync(keyOf(book, numberOf(key)));
      counts.remove(owner);
    }
  }

  /** Writes an entry for what has already happened; if that fails, it counts as lost. */
  async #write(apply: () => void): Promise<void> {
    try {
      await this.#commit(apply);
    } catch (error) {
      this.#lost += 1;
      this.#log.error({ reason: (error as Error).message }, 'audit entry lost');
    }
  }

  /** Reads the next entries of all books together, after or before a number. */
  #read(from: number, reverse: boolean): NumberedEntry[] {
    this.#journal.refresh();
    const found = [...auditBooks.keys()].flatMap((book) => {
      const start = keyOf(book, reverse ? from - 1 : from + 1);
      const end = reverse ? keyOf(book, 0) : keyOf(book + 1, 0);
      return [...this.#table.getRange({ start, end, reverse, limit: chunkEntries })];
    });
    const numbered = found.map(({ key, value }) => ({ number: numberOf(key), key, value }));
    return numbered
      .sort((a, b) => (reverse ? b.number - a.number : a.number - b.number))
      .slice(0, chunkEntries)
      .map(({ number, key, value }) => ({ number, entry: this.#decode(key, value) }));
  }

  #decode(key: Buffer, value: Buffer): AuditEntry | undefined {
    try {
      return unpackEntry(key, value);
    } catch {
      if (!this.#isDamageLogged) {
        this.#log.error({ key: key.toString('hex', 0, 16) }, 'damaged audit entry skipped');
      }
      this.#isDamageLogged = true;
      return undefined;
    }
  }
}
