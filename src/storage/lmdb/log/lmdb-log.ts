import type { DeviceKey } from '../../../core/identity.ts';
import type {
  DevicePage,
  DeviceSpan,
  Ingest,
  IngestOutcome,
  LogPage,
} from '../../../domain/records/record.ts';
import type { ShardLog } from '../../../domain/records/shard-log.ts';
import type { Environment } from '../environment/environment.ts';
import type { Tables } from '../layout/tables.ts';
import type { Append } from '../shard/write.ts';
import type { WriteQueue } from '../shard/write-queue.ts';
import { readDevicePage } from './device-page.ts';
import { endOfLog } from './ingest-log.ts';
import { readLogPage, readLogPageBefore } from './log-page.ts';
import { encodeLogRecord } from './log-record.ts';
import { positionAt, reorderedUntilOf, timeAt } from './log-times.ts';

/** The log of a shard on LMDB. It is polled every few milliseconds: without new commits LMDB is not accessed. */
export class LmdbLog implements ShardLog {
  readonly #environment: Environment;
  readonly #tables: Tables;
  readonly #queue: WriteQueue;
  /** The last read that found nothing: its commit count, and its position. */
  #nothingAfterCommits: number | undefined;
  #nothingFrom = 0;
  /** The log's end at that commit count. */
  #endAfterCommits: number | undefined;
  #end = 0;

  constructor(environment: Environment, tables: Tables, queue: WriteQueue) {
    this.#environment = environment;
    this.#tables = tables;
    this.#queue = queue;
  }

  read(from: number): LogPage {
    const { commits } = this.#environment;
    if (commits === this.#nothingAfterCommits && from === this.#nothingFrom) {
      return { records: [], next: from, damaged: false };
    }
    this.#environment.refresh();
    const page = readLogPage(this.#tables, from);
    if (page.next === from) {
      this.#nothingAfterCommits = commits;
      this.#nothingFrom = from;
    }
    return page;
  }

  readBefore(before: number): LogPage {
    this.#environment.refresh();
    return readLogPageBefore(this.#tables, before);
  }

  ofDevice(device: DeviceKey, span: DeviceSpan): DevicePage {
    this.#environment.refresh();
    return readDevicePage(this.#tables, device, span);
  }

  end(): number {
    const { commits } = this.#environment;
    if (commits === this.#endAfterCommits) return this.#end;
    this.#environment.refresh();
    this.#end = endOfLog(this.#tables.log);
    this.#endAfterCommits = commits;
    // A commit is visible before its own thread has counted it: a caller that got this end must find the records
    // before it, or would take them for trimmed.
    if (this.#end > this.#nothingFrom) this.#nothingAfterCommits = undefined;
    return this.#end;
  }

  positionAt(timeMs: number): number {
    this.#environment.refresh();
    return positionAt(this.#tables, timeMs);
  }

  timeAt(position: number): number | undefined {
    this.#environment.refresh();
    return timeAt(this.#tables, position);
  }

  reorderedUntil(): number {
    this.#environment.refresh();
    return reorderedUntilOf(this.#tables.times);
  }

  append(ingest: Ingest): Promise<IngestOutcome> {
    const append: Append = { device: ingest.device, record: encodeLogRecord(ingest) };
    if (ingest.idempotency !== undefined) append.idempotency = ingest.idempotency;
    return this.#queue.write('ingest', append, append.record.length);
  }
}
