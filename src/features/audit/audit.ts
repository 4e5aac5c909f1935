import type { Log } from '../../core/telemetry/log.ts';
import {
  type AuditBook,
  type AuditEntry,
  type AuditEvent,
  type AuditOutcome,
  auditBooks,
  type BegunEntry,
} from '../../domain/audit-log.ts';
import { Collection } from '../../storage/tables/collection.ts';
import type { Journal } from '../../storage/tables/journal.ts';
import { positionField } from '../../storage/tables/key-codec.ts';
import { type AuditContent, begunContent, ownerOfEvent, withOutcome } from './audit-entry.ts';
import {
  auditOwnerTable,
  auditTable,
  type EntryKey,
  type OwnedKey,
  type StoredEntry,
} from './audit-records.ts';
import type { AuditConfig } from './config.ts';
import { chunkEntries, type NumberedEntry, numberMax, StoredAudit } from './stored-audit.ts';

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

/**
 * The audit log, in the journal of the main thread. A change has its entry on disk before it happens, and its outcome
 * on disk before it is answered: no change is without an entry, whenever the server crashes. This costs each change two
 * commits, shared by all changes under way.
 */
export class Audit extends StoredAudit {
  readonly #journal: Journal;
  readonly #entries: Collection<EntryKey, StoredEntry>;
  readonly #owners: Collection<OwnedKey, undefined>;
  #last = 0;
  /** Entry counts of each book. */
  #counts = new Map<AuditBook, OwnerCounts>();
  /** Set when the counts may be wrong, as a transaction with additions and removals was rolled back. */
  #isStale = false;

  /** `journal`: closed by its owner. */
  constructor(journal: Journal, config: AuditConfig, log: Log) {
    super(config, log);
    this.#journal = journal;
    this.#entries = new Collection(journal, auditTable);
    this.#owners = new Collection(journal, auditOwnerTable);
    this.#count();
    for (const book of auditBooks) {
      const [last] = this.#entries.keys([book], { reverse: true, limit: 1 });
      this.#last = Math.max(this.#last, last?.[1] ?? 0);
    }
  }

  async begin(book: AuditBook, event: AuditEvent): Promise<BegunEntry> {
    const entry = this.#newEntry(book, ownerOfEvent(event), begunContent(event));
    await this.#commit(() => this.#add(entry));
    return { entry };
  }

  async end({ entry }: BegunEntry, outcome: AuditOutcome): Promise<void> {
    const { book, number, ...ended } = withOutcome(entry, outcome);
    await this.#write(() => {
      // A trimmed entry would otherwise reappear, uncounted.
      if (this.#entries.has([book, number])) this.#entries.put([book, number], ended);
    });
  }

  protected keep(book: AuditBook, owner: string, content: AuditContent): Promise<void> {
    const entry = this.#newEntry(book, owner, content);
    return this.#write(() => this.#add(entry));
  }

  protected newest(): number {
    return this.#last;
  }

  #newEntry(book: AuditBook, owner: string, content: AuditContent): AuditEntry {
    this.#last += 1;
    return { ...content, number: this.#last, book, owner, timeMs: Date.now() };
  }

  async #commit(apply: () => void): Promise<void> {
    try {
      await this.#journal.commit(apply);
    } catch (error) {
      this.#isStale = true;
      throw error;
    }
  }

  /** Counts the entries on disk: jumps from owner to owner, and the store counts the entries of each. */
  #count(): void {
    for (const book of auditBooks) {
      const counts = new OwnerCounts();
      this.#counts.set(book, counts);
      let after: OwnedKey | undefined;
      for (;;) {
        const [first] = this.#owners.keys([book], { after, limit: 1 });
        if (first === undefined) break;
        const owner = first[1];
        counts.add(owner, this.#owners.count([book, owner]));
        after = [book, owner, numberMax];
      }
    }
    this.#isStale = false;
  }

  /** Call inside a write transaction. */
  #add({ book, number, ...entry }: AuditEntry): void {
    if (this.#isStale) this.#count();
    const counts = this.#counts.get(book);
    this.#entries.put([book, number], entry);
    this.#owners.put([book, entry.owner, number], undefined);
    if (counts === undefined) return;
    counts.add(entry.owner);
    const excess = counts.total - this.config.settings.current.auditEntriesMax;
    for (let removed = 0; removed < Math.min(excess, trimmedMax); removed += 1) this.#removeOne(book, counts);
  }

  /** Removes the oldest entry of the owner with the most. */
  #removeOne(book: AuditBook, counts: OwnerCounts): void {
    const owner = counts.most() ?? '';
    const [oldest] = this.#owners.keys([book, owner], { limit: 1 });
    // The counts were wrong: count again.
    this.#isStale = oldest === undefined;
    if (oldest === undefined) return;
    this.#owners.delete(oldest);
    this.#entries.delete([book, oldest[2]]);
    counts.remove(owner);
  }

  async #write(apply: () => void): Promise<void> {
    try {
      await this.#commit(apply);
    } catch (error) {
      this.noteLost(error);
    }
  }

  protected read(from: number, reverse: boolean): NumberedEntry[] {
    this.#journal.refresh();
    const found: NumberedEntry[] = [];
    const skip = (key: Buffer): void => {
      this.noteDamage({ key: key.toString('hex', 0, 16) });
      found.push({ number: positionField.decode(key.subarray(1)), entry: undefined });
    };
    for (const book of auditBooks) {
      const bound: EntryKey = [book, from];
      const slice = { ...(reverse ? { before: bound } : { after: bound }), reverse, limit: chunkEntries };
      for (const [[, number], entry] of this.#entries.entries([book], slice, skip)) {
        found.push({ number, entry: { ...entry, book, number } });
      }
    }
    return found.sort((a, b) => (reverse ? b.number - a.number : a.number - b.number)).slice(0, chunkEntries);
  }
}
