import { yieldToEventLoop } from '../../core/async.ts';
import { FairShare } from '../../core/fair-share.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type {
  AuditBook,
  AuditEntry,
  AuditEvent,
  AuditLog,
  AuditOutcome,
  AuditQuery,
  BegunEntry,
} from '../../domain/audit-log.ts';
import {
  type AuditContent,
  begunContent,
  matchesAuditQuery,
  ownerOfEvent,
  withOutcome,
} from './audit-entry.ts';
import type { AuditConfig } from './config.ts';

/**
 * Limits the entries for refused requests per minute, as there may be any number of them; the others are counted.
 * Owners share the limit, so that none uses it up.
 */
class RefusalLimit {
  #minute = 0;
  #taken = new FairShare(0);
  #omitted = 0;

  /** Returns how many were omitted since the last recorded one; undefined if this one is omitted too. */
  take(owner: string, perMinuteMax: number): number | undefined {
    const minute = Math.floor(performance.now() / 60_000);
    if (minute !== this.#minute) {
      this.#minute = minute;
      this.#taken = new FairShare(perMinuteMax);
    }
    this.#taken.max = perMinuteMax;
    if (!this.#taken.take(owner)) {
      this.#omitted += 1;
      return undefined;
    }
    const omitted = this.#omitted;
    this.#omitted = 0;
    return omitted;
  }
}

/** Highest number of an entry. */
export const numberMax = 2 ** 48 - 1;
/** Entries read per step: some milliseconds of the main thread. */
export const chunkEntries = 500;
/** Entries scanned per page, whether they match or not. */
const scannedMax = 5_000;

/** A damaged entry has only a number. */
export interface NumberedEntry {
  number: number;
  entry: AuditEntry | undefined;
}

/** The audit log as it is wherever it is stored. */
export abstract class StoredAudit implements AuditLog {
  protected readonly config: AuditConfig;
  protected readonly log: Log;
  readonly #refusals = new RefusalLimit();
  #lost = 0;
  #isDamageLogged = false;

  constructor(config: AuditConfig, log: Log) {
    this.config = config;
    this.log = log;
  }

  abstract begin(book: AuditBook, event: AuditEvent): Promise<BegunEntry>;
  abstract end(begun: BegunEntry, outcome: AuditOutcome): Promise<void>;

  /** Writes an entry for what has already happened; if that fails, it counts as lost. */
  protected abstract keep(book: AuditBook, owner: string, content: AuditContent): Promise<void>;

  /** Reads the next `chunkEntries` of all books together, after a number in order, or before it in reverse. */
  protected abstract read(from: number, reverse: boolean): NumberedEntry[] | Promise<NumberedEntry[]>;

  /** The number of the newest entry. */
  protected abstract newest(): number | Promise<number>;

  get lost(): number {
    return this.#lost;
  }

  note(event: AuditEvent, outcome: AuditOutcome): void {
    void this.keep('change', ownerOfEvent(event), withOutcome(begunContent(event), outcome));
  }

  refused(owner: string, event: AuditEvent, outcome: AuditOutcome): void {
    const omitted = this.#refusals.take(owner, this.config.settings.current.auditRefusalsPerMinuteMax);
    if (omitted === undefined) return;
    void this.keep('refused', owner, { ...withOutcome(begunContent(event), outcome), omitted });
  }

  async page(
    query: AuditQuery,
    after: number | undefined,
    limit: number,
  ): Promise<{ items: AuditEntry[]; next: string | null }> {
    const items: AuditEntry[] = [];
    let before = after ?? numberMax;
    for (let scanned = 0; scanned < scannedMax; scanned += chunkEntries) {
      const chunk = await this.read(before, true);
      for (const { number, entry } of chunk) {
        before = number;
        if (entry === undefined || !matchesAuditQuery(entry, query)) continue;
        items.push(entry);
        if (items.length === limit) return { items, next: String(number) };
      }
      if (chunk.length < chunkEntries) return { items, next: null };
      await yieldToEventLoop();
    }
    return { items, next: String(before) };
  }

  async *all(query: AuditQuery): AsyncGenerator<AuditEntry[]> {
    const end = await this.newest();
    for (let from = 0; from < end; ) {
      const chunk = await this.read(from, false);
      from = chunk.at(-1)?.number ?? end;
      yield chunk.flatMap(({ number, entry }) =>
        entry !== undefined && number <= end && matchesAuditQuery(entry, query) ? [entry] : [],
      );
      await yieldToEventLoop();
    }
  }

  protected noteLost(error: unknown): void {
    this.#lost += 1;
    this.log.error({ reason: (error as Error).message }, 'audit entry lost');
  }

  /** Logs the first damaged entry only: there may be many. */
  protected noteDamage(which: { number: number } | { key: string }): void {
    if (!this.#isDamageLogged) this.log.error(which, 'damaged audit entry skipped');
    this.#isDamageLogged = true;
  }
}
