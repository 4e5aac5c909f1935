import { correctionMsMax } from '../../core/clock.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { LogPage, StoredRecord } from '../../domain/records/record.ts';
import type { LogFollower } from './log-follower.ts';
import { entryOf, type Start } from './record-cursor.ts';

/** Records of one device that are read at once. */
const devicePageRecordsMax = 500;

/** State of a stream in one log. */
interface Head {
  shard: number;
  /** Position to read next. */
  position: number;
  /** Matching records of the last page; those from `at` on are not emitted yet. */
  records: StoredRecord[];
  at: number;
  /** Cursor entry for this log once the whole page is emitted. */
  entryAfter: string;
  entry: string;
  isEnded: boolean;
}

export interface RecordStreamOptions {
  /** Whose turns at the logs it takes. */
  fleetId: string;
  /** Position to begin at in each log. */
  starts: readonly Start[];
  /** Position to end at in each; absent, it follows the logs. */
  ends?: readonly number[];
  /** Excludes records stored from then on. */
  toMs?: number;
  /** Only the records of one device, which are read by their index up to a position of each log. */
  device?: { device: DeviceKey; until: readonly number[] };
  /** Number of shards to read, from the first on. */
  shards: number;
  matches(record: StoredRecord): boolean;
}

/**
 * Merges all logs, each in its own order; records of different shards come in order of time as far as their logs
 * are.
 */
export class RecordStream {
  readonly #follower: LogFollower;
  readonly #options: RecordStreamOptions;
  readonly #heads: Head[];

  constructor(follower: LogFollower, options: RecordStreamOptions) {
    this.#follower = follower;
    this.#options = options;
    this.#heads = options.starts.map(({ position, entry }, shard) => {
      const isEnded = shard >= options.shards;
      return { shard, position, records: [], at: 0, entryAfter: entry, entry, isEnded };
    });
  }

  /** Continues exactly after the last emitted record. */
  get cursor(): string {
    return this.#heads.map(({ entry }) => entry).join('.');
  }

  get isEnded(): boolean {
    return this.#heads.every(({ isEnded, at, records }) => isEnded && at === records.length);
  }

  /** Sum of the positions read in all logs. */
  get position(): number {
    return this.#heads.reduce((sum, { position }) => sum + position, 0);
  }

  /**
   * Passes matching records to `emit` until it returns false, the time is up, or the logs end. Returns whether there
   * is more to read now.
   */
  async read(emit: (record: StoredRecord) => boolean, untilMs: number): Promise<boolean> {
    const drained = new Set<Head>();
    for (;;) {
      for (const head of this.#heads) {
        while (head.at === head.records.length && !head.isEnded && !drained.has(head)) {
          if (performance.now() >= untilMs) return true;
          if (!(await this.#readPage(head))) drained.add(head);
        }
      }
      const head = this.#oldest();
      if (head === undefined) return false;
      const record = head.records[head.at] as StoredRecord;
      head.at += 1;
      head.entry =
        head.at === head.records.length ? head.entryAfter : entryOf(record.position + 1, record.id);
      if (!emit(record)) return true;
    }
  }

  /** Returns false where there is no record now. */
  async #readPage(head: Head): Promise<boolean> {
    const end = this.#options.ends?.[head.shard] ?? Number.POSITIVE_INFINITY;
    head.isEnded = head.position >= end;
    if (head.isEnded) return false;
    const page = await this.#pageOf(head);
    if (page.next === head.position) {
      // A log may be shorter than it was: then there is nothing to wait for.
      head.isEnded = end !== Number.POSITIVE_INFINITY;
      return false;
    }
    const records = page.records.filter(({ position }) => position < end);
    const last = records.at(-1);
    head.records = records.filter(this.#options.matches);
    head.at = 0;
    head.position = Math.min(page.next, end);
    head.entryAfter = page.isOfDevice ? entryBehind(last, head.entry) : entryOf(head.position, last?.id);
    if (head.records.length === 0) head.entry = head.entryAfter;
    if (last !== undefined && (await this.#isPast(head.shard, last))) head.isEnded = true;
    return true;
  }

  async #pageOf({ shard, position }: Head): Promise<LogPage & { isOfDevice: boolean }> {
    const { device, until = [] } = this.#options.device ?? {};
    const to = until[shard] ?? 0;
    if (device === undefined || position >= to) {
      return { ...(await this.#follower.page(this.#options.fleetId, shard, position)), isOfDevice: false };
    }
    const span = { from: position, to, isNewestFirst: false, recordsMax: devicePageRecordsMax };
    const page = await this.#follower.ofDevice(shard, device, span);
    return { ...page, damaged: false, isOfDevice: true };
  }

  /** Resolves to true if every record after this one was stored at `toMs` or later. */
  async #isPast(shard: number, { storedAtMs, isRelocated, position }: StoredRecord): Promise<boolean> {
    const { toMs } = this.#options;
    if (toMs === undefined || isRelocated || storedAtMs < toMs + correctionMsMax) return false;
    return position >= ((await this.#follower.shards[shard]?.log.reorderedUntil()) ?? 0);
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

/** Of the positions behind one device's last record the ids are unknown: a reader that goes on looks at them again. */
function entryBehind(last: StoredRecord | undefined, before: string): string {
  return last === undefined ? before : entryOf(last.position + 1, last.id);
}
