import { FairShare, isWithinShare } from '../../core/fair-share.ts';
import { type DeviceKey, deviceKeyLength, isDeviceKey } from '../../core/identity.ts';
import { isUuid } from '../../core/uuid.ts';
import type { StoredRecord } from '../../domain/records/record.ts';
import { packed, unpack, type ValueCodec } from '../../storage/tables/codec.ts';
import { Collection, type TableLayout } from '../../storage/tables/collection.ts';
import type { Journal } from '../../storage/tables/journal.ts';

/** Fields of every dead letter, including the record, as the log may be trimmed meanwhile. */
export interface FailedRecord {
  record: StoredRecord;
  failedAtMs: number;
}

/** A page of letters; `next` is null on the last. */
export interface LetterPage<Letter, Id> {
  items: Letter[];
  next: Id | null;
}

export interface LetterQuery<Id> {
  /** The last one seen. */
  after?: Id;
  limit: number;
}

/** What msgpack begins no value with: letters of before begin with their map at once. */
const headMark = 0xc1;
const headBytes = 1 + deviceKeyLength;

/** Letters as stored: mark 1, device, msgpack. Decoded from a copy: what is read is valid only until the next read. */
export function letterCodec<Letter extends FailedRecord>(): ValueCodec<Letter> {
  const { encode, decode } = packed<FailedRecord>(
    ({ record, failedAtMs }) =>
      record !== undefined &&
      isDeviceKey(record.device) &&
      isUuid(record.id) &&
      record.payload.length > 0 &&
      Number.isFinite(failedAtMs),
  );
  return {
    encode: (letter) =>
      Buffer.concat([Buffer.of(headMark), Buffer.from(letter.record.device, 'latin1'), encode(letter)]),
    decode: (bytes) =>
      decode(Buffer.from(bytes[0] === headMark ? bytes.subarray(headBytes) : bytes)) as Letter,
  };
}

/** What counts of a letter, which is known without decoding it. */
interface LetterHead {
  device: DeviceKey;
  bytes: number;
}

const headCodec: ValueCodec<LetterHead> = {
  encode: () => {
    throw new Error('a letter is stored as a whole');
  },
  decode: (stored) => {
    const isOfBefore = stored[0] !== headMark;
    const device = isOfBefore
      ? (unpack(stored) as FailedRecord).record.device
      : stored.toString('latin1', 1, headBytes);
    if (!isDeviceKey(device)) throw new Error('not a dead letter');
    return { device, bytes: stored.length };
  },
};

export interface DeadLetterQueueOptions<Letter, Id> {
  journal: Pick<Journal<string>, 'afterCommit' | 'commit' | 'refresh' | 'rows'>;
  /** An owner is an action or a forwarder. */
  table: TableLayout<[owner: Buffer, id: Id], Letter>;
  isNewestFirst: boolean;
  /** Maximum letters of one owner, and bytes of them, each shared by its devices; may change. */
  limits(): LetterLimits;
}

export interface LetterLimits {
  letters: number;
  bytes: number;
}

/** Time for changing letters in one transaction. */
const changingMsMax = 5;
/** Bytes after which a page ends. */
const pageBytesMax = 256 * 1024;

/** What an owner has, by device. */
class LetterShares {
  readonly #letters = new FairShare(Number.POSITIVE_INFINITY);
  readonly #bytes = new FairShare(Number.POSITIVE_INFINITY);

  hold({ device, bytes }: LetterHead): void {
    this.#letters.hold(device);
    this.#bytes.hold(device, bytes);
  }

  release({ device, bytes }: LetterHead): void {
    this.#letters.release(device);
    this.#bytes.release(device, bytes);
  }

  isFull({ letters, bytes }: LetterLimits): boolean {
    return this.#letters.used >= letters || this.#bytes.used >= bytes;
  }

  /** The size of the next one is unknown: the last one may go beyond the bytes. */
  hasRoomFor(device: DeviceKey, { letters, bytes }: LetterLimits, others: number): boolean {
    return (
      isWithinShare(letters, this.#letters.used + others, this.#letters.usedBy(device)) &&
      isWithinShare(bytes, this.#bytes.used, this.#bytes.usedBy(device))
    );
  }
}

/**
 * The failures that are final: the runs of an action, or the records of a forwarder. Kept to be replayed or dropped.
 */
export class DeadLetterQueue<Letter extends FailedRecord, Id> {
  readonly #options: DeadLetterQueueOptions<Letter, Id>;
  readonly #letters: Collection<[owner: Buffer, id: Id], Letter>;
  readonly #heads: Collection<[owner: Buffer, id: Id], LetterHead>;
  /**
   * Shares by owner, once they were counted on disk; from then on with those of transactions that are not durable
   * yet.
   */
  readonly #shares = new Map<string, LetterShares>();
  readonly #counts = new Map<string, number>();

  constructor(options: DeadLetterQueueOptions<Letter, Id>) {
    this.#options = options;
    const { name, key } = options.table;
    this.#letters = new Collection(options.journal, options.table);
    this.#heads = new Collection(options.journal, { name, key, value: headCodec });
  }

  /** The letters that are durable. */
  count(owner: Buffer): number {
    const key = owner.toString('hex');
    let count = this.#counts.get(key);
    if (count === undefined) {
      this.refresh();
      count = this.#letters.count([owner]);
      this.#counts.set(key, count);
    }
    return count;
  }

  isFull(owner: Buffer): boolean {
    return this.#sharesOf(owner).isFull(this.#options.limits());
  }

  /** True if the device may have one more, beside others that may still come. */
  hasRoomFor(owner: Buffer, device: DeviceKey, others = 0): boolean {
    return this.#sharesOf(owner).hasRoomFor(device, this.#options.limits(), others);
  }

  get(owner: Buffer, id: Id): Letter | undefined {
    this.refresh();
    return this.#letters.get([owner, id]);
  }

  /** A page ends early where its letters are large. */
  list(owner: Buffer, { after, limit }: LetterQuery<Id>): LetterPage<[id: Id, letter: Letter], Id> {
    const { isNewestFirst: reverse } = this.#options;
    const last: [Buffer, Id] | undefined = after === undefined ? undefined : [owner, after];
    const slice = reverse ? { before: last, reverse } : { after: last };
    this.refresh();
    const { rows, hasMore } = this.#letters.list([owner], { ...slice, limit, bytesMax: pageBytesMax });
    const items = rows.map(([[, id], letter]): [Id, Letter] => [id, letter]);
    return { items, next: hasMore ? (items.at(-1)?.[0] ?? null) : null };
  }

  /** The id of one letter, or those of all that there are. */
  ids(owner: Buffer, id?: Id): Id[] {
    if (id !== undefined) return [id];
    this.refresh();
    return [...this.#letters.keys([owner])].map(([, one]) => one);
  }

  /** Call inside a transaction of the journal. */
  has(owner: Buffer, id: Id): boolean {
    return this.#letters.has([owner, id]);
  }

  /** Adds a letter, or replaces it. Call inside a transaction of the journal. */
  put(owner: Buffer, id: Id, letter: Letter): void {
    this.#options.journal.afterCommit((isStored) => this.#recount(owner, isStored));
    const shares = this.#sharesOf(owner);
    const before = this.#heads.get([owner, id]);
    if (before !== undefined) shares.release(before);
    shares.hold({ device: letter.record.device, bytes: this.#letters.put([owner, id], letter) });
  }

  /** Returns false if there is none. Call inside a transaction of the journal. */
  remove(owner: Buffer, id: Id): boolean {
    const head = this.#heads.get([owner, id]);
    if (head === undefined) return false;
    // Counted before the row goes, if it was not yet.
    this.#sharesOf(owner);
    this.#options.journal.afterCommit((isStored) => {
      // Only now: what a replayed letter becomes is counted elsewhere once this is durable, and none may fit in between.
      if (isStored) this.#shares.get(owner.toString('hex'))?.release(head);
      this.#recount(owner, isStored);
    });
    return this.#letters.delete([owner, id]);
  }

  /** Removes one letter, or all; returns how many. @throws ApiError unavailable. */
  drop(owner: Buffer, id?: Id): Promise<number> {
    return this.changeEach(owner, id, (one) => this.remove(owner, one));
  }

  /** Removes everything of a deleted owner. */
  async forget(owner: Buffer): Promise<void> {
    await this.drop(owner);
    this.#shares.delete(owner.toString('hex'));
    this.#counts.delete(owner.toString('hex'));
  }

  /** Changes one letter, or all, some in each transaction; returns for how many `apply` was true. */
  protected async changeEach(owner: Buffer, id: Id | undefined, apply: (id: Id) => boolean): Promise<number> {
    const ids = this.ids(owner, id);
    let changed = 0;
    for (let at = 0; at < ids.length; ) {
      await this.#options.journal.commit(() => {
        const endMs = performance.now() + changingMsMax;
        for (const one of ids.slice(at)) {
          if (apply(one)) changed += 1;
          at += 1;
          if (performance.now() > endMs) break;
        }
      });
    }
    return changed;
  }

  /** Call before reading outside a transaction. */
  protected refresh(): void {
    this.#options.journal.refresh();
  }

  /** Forgets figures that a transaction has changed, and after one that failed those that it had changed already. */
  #recount(owner: Buffer, isStored: boolean): void {
    const key = owner.toString('hex');
    this.#counts.delete(key);
    if (!isStored) this.#shares.delete(key);
  }

  /** Counts by going through all letters, decoding none. */
  #sharesOf(owner: Buffer): LetterShares {
    const key = owner.toString('hex');
    const known = this.#shares.get(key);
    if (known !== undefined) return known;
    const shares = new LetterShares();
    for (const [, head] of this.#heads.entries([owner])) shares.hold(head);
    this.#shares.set(key, shares);
    return shares;
  }
}
