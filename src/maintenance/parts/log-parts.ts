import { OperatorError } from '../../core/errors.ts';
import { uuidTimeMs } from '../../core/uuid.ts';
import type { Table } from '../../storage/lmdb/environment/stored-tables.ts';
import { readSequence, sequenceKey } from '../../storage/lmdb/layout/keys.ts';
import type { Tables } from '../../storage/lmdb/layout/tables.ts';
import { batchBytesMax } from '../../storage/lmdb/log/ingest-log.ts';
import {
  batchHeaderBytes,
  countBatch,
  decodeBatch,
  encodeBatch,
  encodeListedBatch,
  idBehind,
  isDamaged,
  newestTimeMs,
} from '../../storage/lmdb/log/log-batch.ts';
import { encodeLogRecord } from '../../storage/lmdb/log/log-record.ts';
import type { RecordRow } from '../../storage/postgres/schema/tables.ts';
import * as rows from '../../storage/postgres/schema/tables.ts';
import type { Part, ShardSide } from './part.ts';

interface Batch {
  position: number;
  isListed: boolean;
  first: RecordRow;
  records: { row: RecordRow; bytes: Buffer }[];
  byteLength: number;
}

/**
 * Builds the log of a data folder from single records. The ids of a batch follow from the first one's: records that
 * shared a batch share one again, and any other gets a batch of its own, as if it had been alone in its commit. Records
 * whose ids do not tell their times are listed with both.
 */
class RecordBatches {
  readonly #log: Table;
  readonly #jumpsMs: number;

  constructor(log: Table, jumpsMs: number) {
    this.#log = log;
    this.#jumpsMs = jumpsMs;
  }

  /** Call inside a write transaction, in the order of positions. */
  put(rows: readonly RecordRow[]): void {
    let batch: Batch | undefined;
    for (const row of rows) {
      const { recorded_at_ms: recordedAtMs, mail_id: mailId, ...others } = row;
      const bytes = encodeLogRecord({
        ...others,
        ...(recordedAtMs !== null && { recordedAtMs }),
        ...(mailId !== null && { mailId }),
      });
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
    this.#log.putSync(key, encodeBatch(first.id, all, all.length, byteLength));
  }

  /**
   * Relocated records, and records whose id does not match their time: the clock of their machine had jumped, or was
   * behind that of another node.
   */
  #isListed({ own_at_ms: ownMs, id, stored_at_ms: storedAtMs }: RecordRow): boolean {
    return ownMs !== null || storedAtMs - this.#jumpsMs !== uuidTimeMs(id);
  }
}

/** Single values with the same name on both sides, as numbers. */
const valueNames = ['forgotten', 'moved'];

/** The log, and the values that belong to its time. */
export function logParts(side: ShardSide<Tables>): Part[] {
  return [records(side), values(side.tables)];
}

/** Records keep their positions, so cursors of consumers, forwarders and actions stay valid. */
function records({ tables, jumpsMs }: ShardSide<Tables>): Part<rows.RecordRow> {
  const batches = new RecordBatches(tables.log, jumpsMs);
  return {
    name: 'records',
    table: rows.record,
    source: tables.log,
    rowsOf({ key, value }) {
      if (countBatch(value) === undefined) throw new OperatorError('A batch of the log is damaged.');
      const first = readSequence(key, 0);
      const stored_at_ms = newestTimeMs(value) + jumpsMs;
      return [...decodeBatch(value)].map(
        ({ index, timeMs, isRelocated, recordedAtMs, mailId, ...record }) => ({
          position: first + index,
          stored_at_ms,
          own_at_ms: isRelocated ? timeMs + jumpsMs : null,
          recorded_at_ms: recordedAtMs ?? null,
          mail_id: mailId ?? null,
          ...record,
        }),
      );
    },
    write: (written) => batches.put(written),
  };
}

function values({ times }: Tables): Part<rows.ValueRow> {
  return {
    name: 'times',
    table: rows.value,
    where: `t.name IN (${valueNames.map((name) => `'${name}'`).join(', ')})`,
    source: times,
    rowsOf({ key, value }) {
      const name = key.toString('latin1');
      return valueNames.includes(name) ? [{ name, number: readSequence(value, 0) }] : [];
    },
    write(written) {
      for (const { name, number } of written) times.putSync(Buffer.from(name), sequenceKey(number));
    },
  };
}

/** Time between the oldest and the newest of a shard, which sets the width of its partitions. */
export interface Ages {
  recordsMs: number;
  keysMs: number;
}

export function agesOf({ log, idempotency }: Tables): Ages {
  const recordMs = (reverse: boolean): number => {
    for (const { value } of log.getRange({ reverse, limit: 1 }))
      return isDamaged(value) ? 0 : newestTimeMs(value);
    return 0;
  };
  const keyMs = (reverse: boolean): number => {
    for (const key of idempotency.getKeys({ reverse, limit: 1 })) return uuidTimeMs(key);
    return 0;
  };
  return { recordsMs: recordMs(true) - recordMs(false), keysMs: keyMs(true) - keyMs(false) };
}
