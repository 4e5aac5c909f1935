import { uuidTimeMs } from '../../core/uuid.ts';
import type { Table } from '../../storage/lmdb/environment/stored-tables.ts';
import { sequenceKey } from '../../storage/lmdb/layout/keys.ts';
import { batchBytesMax } from '../../storage/lmdb/log/ingest-log.ts';
import {
  batchHeaderBytes,
  encodeBatch,
  encodeListedBatch,
  idBehind,
} from '../../storage/lmdb/log/log-batch.ts';
import { encodeLogRecord } from '../../storage/lmdb/log/log-record.ts';
import type { RecordRow } from '../../storage/postgres/schema/tables.ts';

interface Batch {
  position: number;
  isListed: boolean;
  first: RecordRow;
  records: { row: RecordRow; bytes: Buffer }[];
  byteLength: number;
}

/**
 * The log of a data folder, made of records one by one. A batch has records whose ids follow from the first one's:
 * those that were in one before are in one again, and any other is in a batch of its own, as it would be if it had been
 * the only one of a commit. Records whose ids do not tell their times are listed with both.
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
      const isListed = this.#isListed(row);
      batch = { position: row.position, isListed, first: row, records: [{ row, bytes }], byteLength };
    }
    if (batch !== undefined) this.#store(batch);
  }

  #hasPlace(
    { position, isListed, first, records, byteLength }: Batch,
    row: RecordRow,
    bytes: Buffer,
  ): boolean {
    const index = records.length;
    if (row.position !== position + index || byteLength + bytes.length > batchBytesMax) return false;
    if (this.#isListed(row) !== isListed) return false;
    return isListed ? row.stored_at_ms === first.stored_at_ms : row.id.equals(idBehind(first.id, index));
  }

  #store({ position, isListed, first, records, byteLength }: Batch): void {
    const key = sequenceKey(position);
    if (isListed) {
      const listed = records.map(({ row: { id, own_at_ms: ownMs, stored_at_ms: storedAtMs }, bytes }) => ({
        id,
        timeMs: (ownMs ?? storedAtMs) - this.#jumpsMs,
        isRelocated: ownMs !== null,
        bytes,
      }));
      this.#log.putSync(key, encodeListedBatch(listed, first.stored_at_ms - this.#jumpsMs));
      return;
    }
    const all = records.map(({ bytes }) => bytes);
    this.#log.putSync(key, encodeBatch(first.id, all, byteLength));
  }

  /**
   * What was moved, and what stands where its id does not say it was stored: the clock of the machine that it is from
   * had jumped, or was behind that of another node.
   */
  #isListed({ own_at_ms: ownMs, id, stored_at_ms: storedAtMs }: RecordRow): boolean {
    return ownMs !== null || storedAtMs - this.#jumpsMs !== uuidTimeMs(id);
  }
}
