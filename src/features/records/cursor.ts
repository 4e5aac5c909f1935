import { Collection, type TableLayout } from '../../storage/tables/collection.ts';
import { KeyCodec, positionField, shardField, uuidField } from '../../storage/tables/key-codec.ts';
import type { TableStore } from '../../storage/tables/table-store.ts';
import { type Range, Ranges } from './ranges.ts';

type CursorKey = [reader: Buffer, shard: number];

/**
 * cursors: reader, shard → position, before which every record of that log is done; lost. A reader is a consumer, those
 * of forwarders among them, or an action.
 */
export const cursorTable: TableLayout<CursorKey, [position: number, lost: number]> = {
  name: 'cursors',
  key: new KeyCodec(uuidField, shardField),
  value: new KeyCodec(positionField, positionField),
};

/** cursorDone: reader, shard, position → position: a range of records past that of the cursor that are done too. */
export const cursorDoneTable: TableLayout<[...CursorKey, from: number], [to: number]> = {
  name: 'cursorDone',
  key: new KeyCodec(uuidField, shardField, positionField),
  value: new KeyCodec(positionField),
  isOwn: ([, , from], [to]) => from < to,
};

export const cursorTables = ['cursors', 'cursorDone'] as const;

/** All cursors of a store. Changed inside a write transaction only. */
export class Cursors {
  readonly places: Collection<CursorKey, [position: number, lost: number]>;
  readonly done: Collection<[...CursorKey, from: number], [to: number]>;

  constructor(store: Pick<TableStore, 'rows'>) {
    this.places = new Collection(store, cursorTable);
    this.done = new Collection(store, cursorDoneTable);
  }

  read(reader: Buffer, shard: number): { position: number; lost: number } {
    const [position, lost] = this.places.get([reader, shard]) ?? [0, 0];
    return { position, lost };
  }

  readDone(reader: Buffer, shard: number): Range[] {
    return [...this.done.entries([reader, shard])].map(([[, , from], [to]]) => ({ from, to }));
  }

  /** Puts those of a reader at these positions, one of each shard. */
  place(reader: Buffer, positions: readonly number[]): void {
    this.delete(reader);
    for (const [shard, position] of positions.entries()) this.places.put([reader, shard], [position, 0]);
  }

  delete(reader: Buffer): void {
    this.places.deletePrefix([reader]);
    this.done.deletePrefix([reader]);
  }
}

/**
 * How far one reader has come in the log of one shard: everything before a position is done, and some ranges behind it.
 */
export class Cursor {
  /** As it is on disk. */
  position: number;
  readonly #cursors: Cursors;
  readonly #key: CursorKey;
  #lost: number;
  /** Records done before this cursor was read: by an earlier start, or before the shard count changed. */
  readonly #done: Ranges;
  readonly #acknowledged = new Ranges();
  /** Positions that retention had removed before they were read. */
  readonly #trimmed = new Ranges();

  constructor(cursors: Cursors, reader: Buffer, shard: number) {
    const { position, lost } = cursors.read(reader, shard);
    this.#cursors = cursors;
    this.#key = [reader, shard];
    this.position = position;
    this.#lost = lost;
    this.#done = new Ranges(cursors.readDone(reader, shard));
  }

  /** Number of ranges acknowledged ahead of the position. */
  get ahead(): number {
    return this.#acknowledged.size;
  }

  /** True if the record is done, by its range. */
  isDone(position: number): boolean {
    return this.#done.has(position) || this.#acknowledged.has(position);
  }

  /** The first position from there on that was not done before this cursor was read. */
  next(position: number): number {
    return this.#done.next(position);
  }

  /** Notes that there are no records in [from, to) any more: what is not done there is lost. */
  skip(from: number, to: number): void {
    for (const gap of this.#done.gaps(from, to)) this.#trimmed.add(gap.from, gap.to);
  }

  /** Number of positions before this one that retention removed before they were read. */
  lostBefore(position: number): number {
    return this.#lost + this.#trimmed.count(this.position, position);
  }

  /** Marks records ahead of the position as done, inside a write transaction. If that fails, the cursor is unusable. */
  ack(from: number, to: number): void {
    const { done } = this.#cursors;
    const { merged, range } = this.#acknowledged.add(from, to);
    for (const one of merged) done.delete([...this.#key, one.from]);
    done.put([...this.#key, range.from], [range.to]);
  }

  /**
   * Marks everything before the position as done, inside a write transaction. Returns what to call once that is durable.
   * Until `keepFrom` it stays known which records were done before this cursor was read.
   */
  store(position: number, keepFrom = position): () => void {
    const lost = this.lostBefore(position);
    this.#cursors.places.put(this.#key, [position, lost]);
    for (const { from } of [...this.#done.upTo(keepFrom), ...this.#acknowledged.upTo(position)]) {
      this.#cursors.done.delete([...this.#key, from]);
    }
    return () => {
      this.position = position;
      this.#lost = lost;
      this.#done.drop(keepFrom);
      this.#acknowledged.drop(position);
      this.#trimmed.drop(position);
    };
  }
}
