import type { Page } from '../../../domain/page.ts';
import { pack, unpack } from '../../../storage/tables/codec.ts';
import { rangeUnder } from '../../../storage/tables/key-codec.ts';
import type { Rows } from '../../../storage/tables/table-store.ts';
import type { ActionLogLine, LogQuery, Run, RunQuery } from '../action-work.ts';
import { lastNumber, numberKey, readNumber } from '../tables.ts';

/** Entries scanned per request, whether wanted or not; the next page continues behind them. */
const scannedMax = 10_000;
/** Entries scanned in one turn of the event loop: some milliseconds, where a text is sought in long lines. */
const scannedPerTurn = 500;
/** After a limit was lowered: entries between two trims, and entries removed by each. */
const trimEvery = 64;
const trimmedMax = 1_000;

/** The last entries of each action in one table, by ascending number. */
export class History<Entry extends { number: number }> {
  readonly #table: Rows;
  readonly #last = new Map<string, number>();

  constructor(table: Rows) {
    this.#table = table;
  }

  /** The highest number assigned. */
  last(action: Buffer): number {
    const id = action.toString('hex');
    const known = this.#last.get(id) ?? lastNumber(this.#table, action);
    this.#last.set(id, known);
    return known;
  }

  /**
   * Adds an entry inside a write transaction and returns its number. If the transaction fails, the number is not
   * reused.
   */
  add(action: Buffer, entry: Omit<Entry, 'number'>, entriesMax: number): number {
    const number = this.last(action) + 1;
    this.#last.set(action.toString('hex'), number);
    this.#table.put(numberKey(action, number), pack(entry));
    if (number <= entriesMax) return number;
    this.#table.delete(numberKey(action, number - entriesMax));
    if (number % trimEvery > 0) return number;
    const end = numberKey(action, number - entriesMax + 1);
    for (const key of [...this.#table.keys({ start: action, end, limit: trimmedMax })]) {
      this.#table.delete(key);
    }
    return number;
  }

  /** Changes an entry, if it is still retained, inside a write transaction. */
  change(action: Buffer, number: number, change: (entry: Entry) => Entry): void {
    const before = this.get(action, number);
    if (before === undefined) return;
    const { number: _, ...entry } = change(before);
    this.#table.put(numberKey(action, number), pack(entry));
  }

  get(action: Buffer, number: number): Entry | undefined {
    const value = this.#table.get(numberKey(action, number));
    return value && decodeEntry<Entry>(number, value);
  }

  /** A page of entries, newest first. `turn` settles when the next of them may be scanned. */
  async page(
    action: Buffer,
    { after, limit }: { after?: number; limit: number },
    isWanted: (entry: Entry) => boolean,
    turn: () => Promise<void>,
  ): Promise<Page<Entry>> {
    const page: Page<Entry> = { items: [], next: after === undefined ? null : String(after) };
    for (let scanned = 0; scanned < scannedMax; scanned += scannedPerTurn) {
      await turn();
      const before = page.next === null ? undefined : Number(page.next);
      const { items, next } = this.#scan(action, before, limit - page.items.length, isWanted);
      page.items.push(...items);
      page.next = next;
      if (next === null || page.items.length === limit) break;
    }
    return page;
  }

  #scan(
    action: Buffer,
    after: number | undefined,
    limit: number,
    isWanted: (entry: Entry) => boolean,
  ): Page<Entry> {
    const range = { ...rangeUnder(action), ...(after !== undefined && { end: numberKey(action, after) }) };
    const items: Entry[] = [];
    let scanned = 0;
    for (const { key, value } of this.#table.entries({ ...range, reverse: true })) {
      const entry = decodeEntry<Entry>(readNumber(key), value);
      scanned += 1;
      if (isWanted(entry)) items.push(entry);
      if (items.length === limit || scanned === scannedPerTurn) return { items, next: String(entry.number) };
    }
    return { items, next: null };
  }

  /** All entries, or those from a number on, by ascending number. */
  *all(action: Buffer, from = 0): Generator<Entry> {
    const range = { ...rangeUnder(action), start: numberKey(action, from) };
    for (const { key, value } of this.#table.entries(range)) {
      yield decodeEntry<Entry>(readNumber(key), value);
    }
  }

  count(action: Buffer): number {
    return this.#table.count(rangeUnder(action));
  }

  forget(action: Buffer): void {
    this.#last.delete(action.toString('hex'));
  }
}

function decodeEntry<Entry extends { number: number }>(number: number, value: Buffer): Entry {
  return { ...(unpack(value) as object), number } as Entry;
}

export function isRunWanted(run: Run, { devices, outcome, text }: RunQuery): boolean {
  if (devices?.includes(run.device) === false) return false;
  if (outcome !== undefined && run.outcome !== outcome) return false;
  return holds(`${run.name} ${run.recordId} ${run.error?.code ?? ''} ${run.error?.msg ?? ''}`, text);
}

export function isLineWanted(line: ActionLogLine, { devices, run, text }: LogQuery): boolean {
  if (devices?.includes(line.device) === false) return false;
  if (run !== undefined && line.run !== run) return false;
  return holds(line.text, text);
}

function holds(text: string, wanted: string | undefined): boolean {
  return wanted === undefined || text.toLowerCase().includes(wanted.toLowerCase());
}
