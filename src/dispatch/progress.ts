import type { ActionJournal } from './tables.ts';
import { numberKey, numberValue, rangeOf, readNumber, shardKey } from './tables.ts';

interface Entry {
  position: number;
  isDone: boolean;
}

/** Before this position of that shard's log all is done, as it is on disk. */
export function storedPosition(tables: ActionJournal['tables'], action: Buffer, shard: number): number {
  const stored = tables.positions.getBinary(shardKey(action, shard));
  return stored === undefined ? 0 : readNumber(stored);
}

/**
 * How far one action has come in the log of one shard. Records are done out of order, since devices do not
 * wait for each other: durable are the position before which all of them are, and a mark for each one behind
 * it. As many marks are there at most as records of an action are in hand at once.
 */
export class Progress {
  readonly #tables: ActionJournal['tables'];
  readonly #key: Buffer;
  /** Looked at up to here. */
  scanned: number;
  #stored: number;
  /** In hand, in order, from the first that is not done. */
  #entries: Entry[] = [];
  readonly #marks = new Set<number>();

  /** `logEnd`: what is stored may be ahead of a log that was restored by hand; it is not to wait for it. */
  constructor(tables: ActionJournal['tables'], action: Buffer, shard: number, logEnd: number) {
    this.#tables = tables;
    this.#key = shardKey(action, shard);
    this.#stored = storedPosition(tables, action, shard);
    this.scanned = Math.min(this.#stored, logEnd);
    for (const key of tables.done.getKeys(rangeOf(this.#key))) this.#marks.add(readNumber(key));
  }

  /** Before this position all is done. */
  get position(): number {
    return this.#entries[0]?.position ?? this.scanned;
  }

  get isStored(): boolean {
    return this.position === this.#stored;
  }

  /** Whether it was done before the last start. */
  isDone(position: number): boolean {
    return this.#marks.has(position);
  }

  take(position: number): void {
    this.#entries.push({ position, isDone: false });
  }

  /** Inside a write transaction. When that fails, this object is of no use any more. */
  finish(position: number): void {
    const entry = this.#entries.find((one) => one.position === position);
    if (entry !== undefined) entry.isDone = true;
    const open = this.#entries.findIndex(({ isDone }) => !isDone);
    this.#entries = open < 0 ? [] : this.#entries.slice(open);
    if (position >= this.position) {
      this.#tables.done.putSync(numberKey(this.#key, position), Buffer.alloc(0));
      this.#marks.add(position);
    }
    this.store();
  }

  /** Inside a write transaction. */
  store(): void {
    const { position } = this;
    if (position === this.#stored) return;
    this.#tables.positions.putSync(this.#key, numberValue(position));
    this.#stored = position;
    for (const mark of this.#marks) {
      if (mark >= position) continue;
      this.#tables.done.removeSync(numberKey(this.#key, mark));
      this.#marks.delete(mark);
    }
  }
}
