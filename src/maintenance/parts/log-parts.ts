import { OperatorError } from '../../core/errors.ts';
import { uuidTimeMs } from '../../core/uuid.ts';
import { readSequence, sequenceKey } from '../../storage/lmdb/layout/keys.ts';
import type { Tables } from '../../storage/lmdb/layout/tables.ts';
import { countBatch, decodeBatch, isDamaged, newestTimeMs } from '../../storage/lmdb/log/log-batch.ts';
import * as rows from '../../storage/postgres/schema/tables.ts';
import { behind, type Part, type ShardSide } from './part.ts';
import { RecordBatches } from './record-batches.ts';

/** What there is one of, by the same name and as a number on both sides. */
const valueNames = ['forgotten', 'moved'];

/** The log, and what must be known of its time. */
export function logParts(side: ShardSide<Tables>): Part[] {
  return [records(side), values(side.tables)];
}

/** Each stays at its position, so where consumers, forwarders and actions stand stays true. */
function records({ tables, jumpsMs }: ShardSide<Tables>): Part<rows.RecordRow> {
  const batches = new RecordBatches(tables.log, jumpsMs);
  return {
    name: 'records',
    table: rows.record,
    *read(after) {
      for (const { key, value } of tables.log.getRange(behind(after))) {
        if (!isSound(value)) throw new OperatorError('A batch of the log is damaged.');
        const first = readSequence(key, 0);
        const stored_at_ms = newestTimeMs(value) + jumpsMs;
        const found = [...decodeBatch(value)].map(({ index, timeMs, isRelocated, ...record }) => ({
          position: first + index,
          stored_at_ms,
          own_at_ms: isRelocated ? timeMs + jumpsMs : null,
          ...record,
        }));
        yield { key, rows: found };
      }
    },
    write: (written) => batches.put(written),
  };
}

function isSound(batch: Buffer): boolean {
  try {
    return !isDamaged(batch) && countBatch(batch) !== undefined;
  } catch {
    return false;
  }
}

function values({ times }: Tables): Part<rows.ValueRow> {
  return {
    name: 'times',
    table: rows.value,
    where: `t.name IN (${valueNames.map((name) => `'${name}'`).join(', ')})`,
    *read(after) {
      for (const { key, value } of times.getRange(behind(after))) {
        const name = key.toString('latin1');
        if (valueNames.includes(name)) yield { key, rows: [{ name, number: readSequence(value, 0) }] };
      }
    },
    write(written) {
      for (const { name, number } of written) times.putSync(Buffer.from(name), sequenceKey(number));
    },
  };
}

/** How much time lies between the oldest and the newest of a shard: its partitions are cut by it. */
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
