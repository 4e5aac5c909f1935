import type { Page } from '../../../domain/shard.ts';
import { pack, unpack } from '../../../storage/lmdb/environment/codec.ts';
import type { Table } from '../../../storage/lmdb/environment/stored-tables.ts';
import type { ActionLogLine, LogQuery, Run, RunQuery } from '../service.ts';
import { lastNumber, numberKey, rangeOf, readNumber } from '../tables.ts';

/** Entries scanned per request, whether wanted or not; the next page continues behind them. */
const scannedMax = 10_000;
/** After a limit was lowered: entries between two trims, and entries removed by each. */
const trimEvery = 64;
const trimmedMax = 1_000;

/** The last entries of each action in one table, by ascending number. */
export class History<Entry extends { number: number }> {
  readonly #table: Table;
  readonly #last = new Map<string, number>();

  constructor(table: Table) {
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
    this.#table.putSync(numberKey(action, number), pack(entry));
    if (number <= entriesMax) return number;
    this.#table.removeSync(numberKey(action, number - entriesMax));
    if (number % trimEvery > 0) return number;
    const end = numberKey(action, number - entriesMax + 1);
    for (const key of [...this.#table.getKeys({ start: action, end, limit: trimmedMax })]) {
      this.#table.removeSync(key);
    }
    return number;
  }

  get(action: Buffer, number: number): Entry | undefined {
    const value = this.#table.getBinary(numberKey(action, number));
    return value && decodeEntry<Entry>(number, value);
  }

  /** A page of entries, newest first. */
  page(
    action: Buffer,
    { after, limit }: { after?: number; limit: number },
    isWanted: (entry: Entry) => boolean,
  ): Page<Entry> {
    const start = numberKey(action, (after ?? 2 ** 48 - 1) - (after === undefined ? 0 : 1));
    const items: Entry[] = [];
    let scanned = 0;
    for (const { key, value } of this.#table.getRange({ start, end: action, reverse: true })) {
      const entry = decodeEntry<Entry>(readNumber(key), value);
      scanned += 1;
      if (isWanted(entry)) items.push(entry);
      if (items.length === limit || scanned === scannedMax) return { items, next: String(entry.number) };
    }
    return { items, next: null };
  }

  /** All entries, by ascending number. */
  *all(action: Buffer): Generator<Entry> {
    for (const { key, value } of this.#table.getRange(rangeOf(action))) {
      yield decodeEntry<Entry>(readNumber(key), value);
    }
  }

  count(action: Buffer): number {
    return this.#table.getKeysCount(rangeOf(action));
  }

  forget(action: Buffer): void {
    this.#last.delete(action.toString('hex'));
  }
}

function decodeEntry<Entry extends { number: number }>(number: number, value: Buffer): Entry {
  return { ...(unpack(value) as object), number } as Entry;
}

export function isRunWanted(run: Run, { device, outcome, text }: RunQuery): boolean {
  if (device !== undefined && run.device !== device) return false;
  if (outcome !== undefined && run.outcome !== outcome) return false;
  return holds(`${run.name} ${run.recordId} ${run.error?.code ?? ''} ${run.error?.msg ?? ''}`, text);
}

export function isLineWanted(line: ActionLogLine, { device, run, text }: LogQuery): boolean {
  if (device !== undefined && line.device !== device) return false;
  if (run !== undefined && line.run !== run) return false;
  return holds(line.text, text);
}

function holds(text: string, wanted: string | undefined): boolean {
  return wanted === undefined || text.toLowerCase().includes(wanted.toLowerCase());
}
