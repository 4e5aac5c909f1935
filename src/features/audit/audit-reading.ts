import { yieldToEventLoop } from '../../core/async.ts';
import { FairShare } from '../../core/fair-share.ts';
import type { AuditEntry, AuditQuery } from '../../domain/audit-log.ts';
import { matchesAuditQuery } from './audit-entry.ts';

/**
 * Limits the entries for refused requests per minute, as there may be any number of them; the others are counted.
 * Owners share the limit, so that none uses it up.
 */
export class RefusalLimit {
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

/** Reads the next `chunkEntries` of all books together, after a number in order, or before it in reverse. */
type ReadChunk = (from: number, reverse: boolean) => NumberedEntry[] | Promise<NumberedEntry[]>;

/** Reads a page, newest first. It may be short, as the entries scanned per request are bounded. */
export async function readPage(
  read: ReadChunk,
  query: AuditQuery,
  after: number | undefined,
  limit: number,
): Promise<{ items: AuditEntry[]; next: string | null }> {
  const items: AuditEntry[] = [];
  let before = after ?? numberMax;
  for (let scanned = 0; scanned < scannedMax; scanned += chunkEntries) {
    const chunk = await read(before, true);
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

/** Reads all entries up to number `end`, oldest first. */
export async function* readAll(
  read: ReadChunk,
  query: AuditQuery,
  end: number,
): AsyncGenerator<AuditEntry[]> {
  for (let from = 0; from < end; ) {
    const chunk = await read(from, false);
    from = chunk.at(-1)?.number ?? end;
    yield chunk.flatMap(({ number, entry }) =>
      entry !== undefined && number <= end && matchesAuditQuery(entry, query) ? [entry] : [],
    );
    await yieldToEventLoop();
  }
}
