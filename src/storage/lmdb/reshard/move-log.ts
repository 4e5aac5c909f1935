import type { DeviceKey } from '../../../core/identity.ts';
import { mergeForgotten } from '../../tables/idempotency-keys.ts';
import type { Environment } from '../environment/environment.ts';
import type { Table } from '../environment/stored-tables.ts';
import { readSequence, sequenceKey } from '../layout/keys.ts';
import { copyClock } from '../layout/shard-clock.ts';
import { batchBytesMax, endOfLog } from '../log/ingest-log.ts';
import {
  encodeListedBatch,
  entriesIn,
  type ListedRecord,
  newestTimeMs,
  splitBatch,
} from '../log/log-batch.ts';
import { deviceOfLogRecord } from '../log/log-record.ts';
import { storeReorderedUntil } from '../log/log-times.ts';
import type { DevicesSize, Step } from './move-devices.ts';

/** Copies what a shard must know of time to take over devices of another. Idempotent. */
export function copyTimes(source: Environment, target: Environment): void {
  target.writeSync(() => {
    copyClock(source.table('times'), target.table('times'));
    mergeForgotten(source.rows('times'), target.rows('times'));
  });
}

/** Bytes buffered in memory for all logs together, then written in one transaction per log. */
const bufferedBytesMax = 32 * 1024 * 1024;

/** For estimates: moving this much of a log takes about as long as one record of another table. */
const bytesPerRecord = 512;

/** The device of the record at a position. */
export interface DeviceAtPosition {
  position: number;
  device: DeviceKey;
}

export function sizeOfLog(environment: Environment): DevicesSize {
  const { bytes } = environment.sizeOf('log');
  return { records: bytes / bytesPerRecord, bytes };
}

/** The position of the next record in this shard's log. */
export function endOfShardLog(environment: Environment): number {
  return endOfLog(environment.table('log'));
}

/** Appends records to the logs of their devices' new shards. Ids stay. */
class LogsToExtend {
  readonly #buffered = new Map<Environment, ListedRecord[]>();
  #bytes = 0;

  add(target: Environment, record: ListedRecord): void {
    const records = this.#buffered.get(target);
    if (records === undefined) this.#buffered.set(target, [record]);
    else records.push(record);
    this.#bytes += record.bytes.length;
  }

  get isFull(): boolean {
    return this.#bytes >= bufferedBytesMax;
  }

  flush(): void {
    for (const [target, records] of this.#buffered) {
      const table = target.table('log');
      let position = endOfLog(table);
      let newestMs = newestMsOfLog(table);
      target.writeSync(() => {
        for (const batch of cut(records)) {
          const bytes = encodeListedBatch(batch, newestMs);
          table.putSync(sequenceKey(position), bytes, { append: true });
          position += batch.length;
          newestMs = newestTimeMs(bytes);
        }
        storeReorderedUntil(target.table('times'), position);
      });
    }
    this.#buffered.clear();
    this.#bytes = 0;
  }
}

function newestMsOfLog(table: Table): number {
  for (const { value } of table.getRange({ reverse: true, limit: 1 })) return newestTimeMs(value);
  return 0;
}

function* cut(records: readonly ListedRecord[]): Generator<ListedRecord[]> {
  let batch: ListedRecord[] = [];
  let bytes = 0;
  for (const record of records) {
    if (batch.length > 0 && bytes + record.bytes.length > batchBytesMax) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(record);
    bytes += record.bytes.length;
  }
  if (batch.length > 0) yield batch;
}

/**
 * Yields the device of each record of a shard's log, in order: batch by batch, so that the caller can pause between
 * them.
 */
export function* devicesInLog(environment: Environment): Generator<Generator<DeviceAtPosition>> {
  for (const { key, value } of environment.table('log').getRange({})) {
    yield devicesInBatch(readSequence(key, 0), value);
  }
}

function* devicesInBatch(first: number, batch: Buffer): Generator<DeviceAtPosition> {
  for (const { index, at } of entriesIn(batch)) {
    yield { position: first + index, device: deviceOfLogRecord(batch, at) };
  }
}

/**
 * Copies the log of a removed shard, in order, to the ends of its devices' new shards' logs. Not idempotent: `cutLog`
 * undoes it.
 */
export function* moveLog(source: Environment, targetOf: (device: DeviceKey) => Environment): Generator<Step> {
  const logs = new LogsToExtend();
  for (const { value } of source.table('log').getRange({})) {
    for (const { device, record } of splitBatch(value)) logs.add(targetOf(device), record);
    if (logs.isFull) logs.flush();
    yield { passed: value.length / bytesPerRecord, devices: 0 };
  }
  logs.flush();
}

/** Removes all records from that position on. */
export function cutLog(environment: Environment, end: number): void {
  const table = environment.table('log');
  const keys = [...table.getKeys({ start: sequenceKey(end) })];
  if (keys.length === 0) return;
  environment.writeSync(() => {
    for (const key of keys) table.removeSync(key);
  });
}
