import { correctionMsMax } from '../../core/clock.ts';
import type { StoredRecord } from '../../domain/records/record.ts';
import type { LogReader } from './log-reader.ts';
import { entryOf, type Start } from './record-cursor.ts';

/** One log as a stream goes through it. */
interface Head {
  shard: number;
  /** Of what is read next. */
  position: number;
  /** Wanted records of the page read last; those from `at` on are still to be given. */
  records: StoredRecord[];
  at: number;
  /** The cursor's part for this log, once all of the page is given. */
  entryBehind: string;
  entry: string;
  isEnded: boolean;
}

export interface RecordStreamOptions {
  /** Where to begin in each log. */
  starts: readonly Start[];
  /** Where to end in each; not given, it goes on with what is stored later. */
  ends?: readonly number[];
  /** Records from then on are not wanted. */
  toMs?: number;
  /** Only logs of these shards, which are the first ones. */
  shards: number;
  wants(record: StoredRecord): boolean;
}

/**
 * Goes through all logs at once, in the order of each; what different shards have comes in order of time as far as
 * it is in their logs.
 */
export class RecordStream {
  readonly #reader: LogReader;
  readonly #options: RecordStreamOptions;
  readonly #heads: Head[];

  constructor(reader: LogReader, options: RecordStreamOptions) {
    this.#reader = reader;
    this.#options = options;
    this.#heads = options.starts.map(({ position, entry }, shard) => {
      const isEnded = shard >= options.shards;
      return { shard, position, records: [], at: 0, entryBehind: entry, entry, isEnded };
    });
  }

  /** Goes on exactly behind the record that was given last. */
  get cursor(): string {
    return this.#heads.map(({ entry }) => entry).join('.');
  }

  get isEnded(): boolean {
    return this.#heads.every(({ isEnded, at, records }) => isEnded && at === records.length);
  }

  /** Positions of all logs that it has read. */
  get position(): number {
    return this.#heads.reduce((sum, { position }) => sum + position, 0);
  }

  /**
   * Gives wanted records to `give` until that answers false, the time is up, or nothing more stands in the logs.
   * Answers whether there is more to be looked at now.
   */
  async read(give: (record: StoredRecord) => boolean, untilMs: number): Promise<boolean> {
    const dry = new Set<Head>();
    for (;;) {
      for (const head of this.#heads) {
        while (head.at === head.records.length && !head.isEnded && !dry.has(head)) {
          if (performance.now() >= untilMs) return true;
          if (!(await this.#readPage(head))) dry.add(head);
        }
      }
      const head = this.#oldest();
      if (head === undefined) return false;
      const record = head.records[head.at] as StoredRecord;
      head.at += 1;
      head.entry =
        head.at === head.records.length ? head.entryBehind : entryOf(record.position + 1, record.id);
      if (!give(record)) return true;
    }
  }

  /** False when nothing stands there now. */
  async #readPage(head: Head): Promise<boolean> {
    const end = this.#options.ends?.[head.shard] ?? Number.POSITIVE_INFINITY;
    head.isEnded = head.position >= end;
    if (head.isEnded) return false;
    const page = await this.#reader.page(head.shard, head.position);
    if (page.next === head.position) {
      // A log may be shorter than it was: nothing is to be waited for then.
      head.isEnded = end !== Number.POSITIVE_INFINITY;
      return false;
    }
    const records = page.records.filter(({ position }) => position < end);
    const last = records.at(-1);
    head.records = records.filter(this.#options.wants);
    head.at = 0;
    head.position = Math.min(page.next, end);
    head.entryBehind = entryOf(head.position, last?.id);
    if (head.records.length === 0) head.entry = head.entryBehind;
    if (last !== undefined && (await this.#isPast(head.shard, last))) head.isEnded = true;
    return true;
  }

  /** Whether all that stands behind this record was stored too late to be wanted. */
  async #isPast(shard: number, { storedAtMs, isRelocated, position }: StoredRecord): Promise<boolean> {
    const { toMs } = this.#options;
    if (toMs === undefined || isRelocated || storedAtMs < toMs + correctionMsMax) return false;
    return position >= ((await this.#reader.shards[shard]?.reorderedUntil()) ?? 0);
  }

  #oldest(): Head | undefined {
    let oldest: Head | undefined;
    let oldestMs = Number.POSITIVE_INFINITY;
    for (const head of this.#heads) {
      const record = head.records[head.at];
      if (record === undefined || record.storedAtMs >= oldestMs) continue;
      oldest = head;
      oldestMs = record.storedAtMs;
    }
    return oldest;
  }
}
