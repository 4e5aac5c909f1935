import { randomBytes } from 'node:crypto';
import { type JournalOwner, QueueJournal } from './journal.ts';

/** Settled mails that are remembered: those whose settling the server may not have heard of. */
const settledMax = 64;

/** Fields that are decided when an entry is first sent by its own route, and stay the same for each retry. */
interface Attempt {
  /** When it was recorded, or null if nobody knows or it is not late. */
  readonly atMs: number | null;
  readonly key: string | null;
  readonly keyMs: number | null;
}

/** An entry that waits to be sent. */
export interface QueueEntry extends Attempt {
  readonly number: number;
  readonly kind: 'datapoint' | 'msg';
  readonly name: string;
  /** JSON, as it is sent. */
  readonly body: string;
  /** Its time is by a clock that had not been compared with the server's. */
  readonly isClockUnheard?: boolean;
}

/** The device's own order (D30): an entry has its number in it, counted from behind `base`. */
export interface QueueOrder {
  readonly name: string;
  readonly base: number;
}

/** Counters of a queue since it was made: `doubtful` are entries that may be stored twice. */
export type QueueCounter = 'dropped' | 'refused' | 'doubtful';

/** Values that the device remembers beside its queue, when it claims its secret. */
export type RememberedValue = 'secret' | 'claimed';

/** One change of the queue, as it is written to its journal. */
type Change =
  | ({ do: 'put' } & QueueEntry)
  | ({ do: 'try'; number: number } & Attempt)
  | { do: 'remove'; number: number }
  | { do: 'done'; to: number; last?: number }
  | ({ do: 'order' } & QueueOrder)
  | { do: 'count'; name: QueueCounter; by: number }
  | { do: 'remember'; name: RememberedValue; value: string }
  | { do: 'settle'; id: string; verb: string }
  | { do: 'unsettle'; id: string };

/** Bounds of a queue. */
export interface QueueLimits {
  bytesMax: number;
  entriesMax: number;
}

/**
 * Queue of entries to send, mails settled and counters: in a journal on disk, since a device can lose power, or without
 * a path in memory.
 */
export class DeviceQueue {
  readonly #limits: QueueLimits;
  readonly #journal: QueueJournal<Change> | undefined;
  /** Apart, since the oldest datapoints go first where there is no room. */
  readonly #entries = { datapoint: new Map<number, QueueEntry>(), msg: new Map<number, QueueEntry>() };
  readonly #counts: Record<QueueCounter, number> = { dropped: 0, refused: 0, doubtful: 0 };
  readonly #values = new Map<string, string>();
  readonly #settled = new Map<string, string>();
  readonly #owner: JournalOwner<Change> = {
    apply: (change) => this.#apply(change),
    reset: () => this.#reset(),
    // Each may have been an entry: a number that comes twice would be taken for known.
    damaged: (lines) => {
      this.#lastNumber += lines;
    },
    snapshot: () => this.#snapshot(),
  };
  #bytes = 0;
  #lastNumber = 0;
  /**
   * Entries up to there are stored by the server, or refused for good. Whether a disk that is full takes that or not, they
   * are sent no more while this process lives; those of a later one are known to the server.
   */
  #doneTo = 0;
  /** Entries up to there are on disk, and may be sent: the number of one that is not could come twice. */
  #onDiskTo = 0;
  #order: QueueOrder | undefined;
  #sending: number | undefined;

  constructor(path: string | undefined, limits: QueueLimits) {
    this.#limits = limits;
    this.#journal = path === undefined ? undefined : new QueueJournal<Change>(path, this.#owner);
    this.#onDiskTo = this.#lastNumber;
    // Nothing in it is under way, so a new order is safe, also for a file that is older than what was sent from it.
    if (this.entries === 0) this.#order = undefined;
  }

  get entries(): number {
    return this.#entries.datapoint.size + this.#entries.msg.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  count(name: QueueCounter): number {
    return this.#counts[name];
  }

  close(): Promise<void> {
    return this.#journal?.close() ?? Promise.resolve();
  }

  /** Applies a change, and resolves when it is on disk. */
  #change(change: Change): Promise<void> {
    if (this.#journal !== undefined) return this.#journal.append(change);
    this.#apply(change);
    return Promise.resolve();
  }

  #apply(change: Change): void {
    if (change.do === 'put') {
      const { do: _, ...entry } = change;
      this.#lastNumber = Math.max(this.#lastNumber, entry.number);
      if (entry.number <= this.#doneTo) return;
      this.#entries[entry.kind].set(entry.number, entry);
      this.#bytes += Buffer.byteLength(entry.body);
    } else if (change.do === 'done') this.#finish(change.to, change.last ?? 0);
    else if (change.do === 'order') this.#order = { name: change.name, base: change.base };
    else if (change.do === 'try') {
      const { do: _, ...attempt } = change;
      const entry = this.#find(change.number);
      // It keeps its place in the map.
      if (entry !== undefined)
        this.#entries[entry.kind].set(entry.number, { ...entry, ...attempt, isClockUnheard: false });
    } else if (change.do === 'remove') this.#forget(change.number);
    else if (change.do === 'count') this.#counts[change.name] += change.by;
    else if (change.do === 'remember') this.#values.set(change.name, change.value);
    else if (change.do === 'unsettle') this.#settled.delete(change.id);
    else {
      this.#settled.set(change.id, change.verb);
      const [oldest] = this.#settled.keys();
      if (this.#settled.size > settledMax && oldest !== undefined) this.#settled.delete(oldest);
    }
  }

  #finish(to: number, last: number): void {
    this.#doneTo = Math.max(this.#doneTo, to);
    this.#lastNumber = Math.max(this.#lastNumber, to, last);
    for (const map of [this.#entries.datapoint, this.#entries.msg]) {
      for (const number of map.keys()) {
        if (number > to) break;
        this.#forget(number);
      }
    }
  }

  #find(number: number): QueueEntry | undefined {
    return this.#entries.datapoint.get(number) ?? this.#entries.msg.get(number);
  }

  #forget(number: number): void {
    const entry = this.#find(number);
    if (entry === undefined) return;
    this.#entries[entry.kind].delete(number);
    this.#bytes -= Buffer.byteLength(entry.body);
  }

  #reset(): void {
    for (const map of [this.#entries.datapoint, this.#entries.msg, this.#values, this.#settled]) map.clear();
    Object.assign(this.#counts, { dropped: 0, refused: 0, doubtful: 0 });
    this.#order = undefined;
    this.#bytes = 0;
  }

  *#snapshot(): Iterable<Change> {
    for (const [name, by] of Object.entries(this.#counts))
      yield { do: 'count', name: name as QueueCounter, by };
    yield { do: 'done', to: this.#doneTo, last: this.#lastNumber };
    if (this.#order !== undefined) yield { do: 'order', ...this.#order };
    for (const [name, value] of this.#values) yield { do: 'remember', name: name as RememberedValue, value };
    for (const [id, verb] of this.#settled) yield { do: 'settle', id, verb };
    for (const map of [this.#entries.datapoint, this.#entries.msg]) {
      for (const entry of map.values()) yield { do: 'put', ...entry };
    }
  }

  /** Makes room by dropping the oldest, datapoints first, and adds an entry. It is on disk when `stored` resolves. */
  add(entry: Omit<QueueEntry, 'number'>): { dropped: number; stored: Promise<void> } {
    const bytes = Buffer.byteLength(entry.body);
    let dropped = 0;
    for (;;) {
      const isFull = this.entries >= this.#limits.entriesMax || this.#bytes + bytes > this.#limits.bytesMax;
      const oldest = isFull ? this.#oldestToDrop() : undefined;
      if (oldest === undefined) break;
      this.#change({ do: 'remove', number: oldest }).catch(() => {});
      dropped += 1;
    }
    if (dropped > 0) this.increment('dropped', dropped);
    const number = this.#lastNumber + 1;
    if (this.#order === undefined) this.#begin(number - 1).catch(() => {});
    const stored = this.#change({ do: 'put', ...entry, number }).then(() => {
      this.#onDiskTo = Math.max(this.#onDiskTo, number);
    });
    return { dropped, stored };
  }

  #begin(base: number): Promise<void> {
    return this.#change({ do: 'order', name: randomBytes(12).toString('base64url'), base });
  }

  /** The last number that was given to an entry. */
  get lastNumber(): number {
    return this.#lastNumber;
  }

  get order(): QueueOrder | undefined {
    return this.#order;
  }

  /** Begins another order with what waits: the server knows more of this one than was sent. */
  renewOrder(): Promise<void> {
    return this.#begin((this.head()?.number ?? this.#lastNumber + 1) - 1);
  }

  #oldestToDrop(): number | undefined {
    for (const map of [this.#entries.datapoint, this.#entries.msg]) {
      for (const number of map.keys()) if (number !== this.#sending) return number;
    }
    return undefined;
  }

  /** The oldest entry, which stays until it is done. */
  head(): QueueEntry | undefined {
    const [head] = this.#onDisk();
    this.#sending = head?.number;
    return head;
  }

  /** The oldest entries without a key and with numbers that follow each other, as long as they fit. */
  run(fits: (entry: QueueEntry) => boolean): QueueEntry[] {
    const found: QueueEntry[] = [];
    for (const entry of this.#onDisk()) {
      const isNext = found.length === 0 || entry.number === (found.at(-1)?.number ?? 0) + 1;
      if (!isNext || entry.key !== null || !fits(entry)) break;
      found.push(entry);
    }
    return found;
  }

  /** Entries that are on disk, the oldest first. */
  *#onDisk(): Iterable<QueueEntry> {
    const [datapoints, messages] = [this.#entries.datapoint.values(), this.#entries.msg.values()];
    let [datapoint, message] = [datapoints.next().value, messages.next().value];
    for (;;) {
      const isDatapoint =
        message === undefined || (datapoint !== undefined && datapoint.number < message.number);
      const next = isDatapoint ? datapoint : message;
      if (next === undefined || next.number > this.#onDiskTo) return;
      yield next;
      if (isDatapoint) datapoint = datapoints.next().value;
      else message = messages.next().value;
    }
  }

  update({ number, atMs, key, keyMs }: QueueEntry): Promise<void> {
    return this.#change({ do: 'try', number, atMs, key, keyMs });
  }

  /** All up to that number are done. Not waited for: what is there again after a crash is known to the server. */
  done(to: number): void {
    this.#sending = undefined;
    this.#change({ do: 'done', to }).catch(() => {});
  }

  increment(name: QueueCounter, by = 1): void {
    this.#change({ do: 'count', name, by }).catch(() => {});
  }

  value(name: RememberedValue): string | undefined {
    return this.#values.get(name);
  }

  remember(name: RememberedValue, value: string): Promise<void> {
    return this.#change({ do: 'remember', name, value });
  }

  verbOf(mailId: string): string | undefined {
    return this.#settled.get(mailId);
  }

  settle(id: string, verb: string): Promise<void> {
    return this.#change({ do: 'settle', id, verb });
  }

  unsettle(id: string): Promise<void> {
    return this.#change({ do: 'unsettle', id });
  }
}
