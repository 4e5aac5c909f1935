import { uuidTimeMs } from '../core/uuid.ts';
import type { RecordRow } from '../engine/tables.ts';
import { batchBytesMax } from '../shard/ingest-log.ts';
import { sequenceKey } from '../shard/keys.ts';
import { batchHeaderBytes, encodeBatch, encodeMovedBatch, idBehind } from '../shard/log-batch.ts';
import { encodeLogRecord } from '../shard/log-record.ts';
import type { Table } from '../store/environment.ts';

/** More than transactions overtake each other by, whose records have the time of their id and stand by another. */
const differenceMsMax = 60_000;

interface Batch {
  position: number;
  isMoved: boolean;
  first: RecordRow;
  records: { row: RecordRow; bytes: Buffer }[];
  byteLength: number;
}

/**
 * The log of a data folder, made of records one by one. A batch has records whose ids follow from the first one's:
 * those that were in one before are in one again, and any other is in a batch of its own, as it would be if it had been
 * the only one of a commit. Records that were moved have ids of their own in their batch.
 */
export class RecordBatches {
  readonly #log: Table;
  readonly #jumpsMs: number;

  constructor(log: Table, jumpsMs: number) {
    this.#log = log;
    this.#jumpsMs = jumpsMs;
  }

  /** Inside a write transaction, in the order of their positions. */
  put(rows: readonly RecordRow[]): void {
    let batch: Batch | undefined;
    for (const row of rows) {
      const bytes = encodeLogRecord(row);
      if (batch !== undefined && this.#hasPlace(batch, row, bytes)) {
        batch.records.push({ row, bytes });
        batch.byteLength += bytes.length;
        continue;
      }
      if (batch !== undefined) this.#store(batch);
      const byteLength = batchHeaderBytes + bytes.length;
      batch = { position: row.position, isMoved: this.#isMoved(row), first: row, records: [], byteLength };
      batch.records.push({ row, bytes });
    }
    if (batch !== undefined) this.#store(batch);
  }

  #hasPlace(
    { position, isMoved, first, records, byteLength }: Batch,
    row: RecordRow,
    bytes: Buffer,
  ): boolean {
    const index = records.length;
    if (row.position !== position + index || byteLength + bytes.length > batchBytesMax) return false;
    if (isMoved || this.#isMoved(row)) {
      return isMoved && this.#isMoved(row) && row.stored_at_ms === first.stored_at_ms;
    }
    return row.id.equals(idBehind(first.id, index));
  }

  #store({ position, isMoved, first, records, byteLength }: Batch): void {
    const key = sequenceKey(position);
    if (isMoved) {
      const moved = records.map(({ row: { device, id }, bytes }) => ({ device, id, bytes }));
      const newest = idOfTime(first.id, first.stored_at_ms - this.#jumpsMs);
      this.#log.putSync(key, encodeMovedBatch(moved, newest));
      return;
    }
    const all = records.map(({ bytes }) => bytes);
    this.#log.putSync(key, encodeBatch(first.id, all, byteLength));
  }

  /**
   * What stands where its id does not say it was stored is kept as what was moved, or retention would take it for older
   * than it is: the clock of the machine that it is from had jumped.
   */
  #isMoved({ own_at_ms: ownMs, id, stored_at_ms: storedAtMs }: RecordRow): boolean {
    return ownMs !== null || Math.abs(storedAtMs - this.#jumpsMs - uuidTimeMs(id)) > differenceMsMax;
  }
}

function idOfTime(id: Buffer, timeMs: number): Buffer {
  const other = Buffer.from(id);
  other.writeUIntBE(timeMs, 0, 6);
  return other;
}
