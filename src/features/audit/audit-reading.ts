import { yieldToEventLoop } from '../../core/async.ts';
import { FairShare } from '../../core/fair-share.ts';
import type { AuditEntry, AuditQuery } from '../../domain/audit-log.ts';
import { matchesAuditQuery } from './audit-entry.ts';

/**
 * So many refused requests a minute have an entry, for there may be any number of them; the others are counted. Nobody
 * takes up all of them.
 */
export class RefusalLimit {
  #minute = 0;
  #taken = new FairShare(0);
  #omitted = 0;

  /** How many were omitted since the last one that was not; undefined where this one is omitted too. */
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

/** Greatest number of an entry. */
export const numberMax = 2 ** 48 - 1;
/** Entries read in one go: some milliseconds of the main thread. */
export const chunkEntries = 500;
/** Entries that one page looks at, whatever it looks for. */
const lookedAtMax = 5_000;

/** One that is damaged has a number alone. */
export interface NumberedEntry {
  number: number;
  entry: AuditEntry | undefined;
}

/** The next `chunkEntries` of all books together, behind a number in order, or before it in reverse. */
type ReadChunk = (from: number, reverse: boolean) => NumberedEntry[] | Promise<NumberedEntry[]>;

/** Newest first. A page may be short, for one request looks at so many entries alone. */
export async function readPage(
  read: ReadChunk,
  query: AuditQuery,
  after: number | undefined,
  limit: number,
): Promise<{ items: AuditEntry[]; next: string | null }> {
  const items: AuditEntry[] = [];
  let before = after ?? numberMax;
  for (let looked = 0; looked < lookedAtMax; looked += chunkEntries) {
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

/** Oldest first, up to the entry of that number. */
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
