import type { DeviceKey } from '../../../core/identity.ts';
import type { Environment } from '../environment/environment.ts';
import { carryForgotten } from '../environment/idempotency-keys.ts';
import type { Table } from '../environment/stored-tables.ts';
import { readSequence, sequenceKey } from '../layout/keys.ts';
import { carryClock } from '../layout/shard-clock.ts';
import { batchBytesMax, endOfLog } from '../log/ingest-log.ts';
import {
  encodeListedBatch,
  type ListedRecord,
  newestTimeMs,
  placesIn,
  splitBatch,
} from '../log/log-batch.ts';
import { deviceOfLogRecord } from '../log/log-record.ts';
import { storeReorderedUntil } from '../log/log-times.ts';
import type { DevicesSize, Step } from './move-devices.ts';

/** What a shard must know of time to take over devices of another. To do it again changes nothing. */
export function carryTimes(source: Environment, target: Environment): void {
  target.writeSync(() => {
    carryClock(source.table('times'), target.table('times'));
    carryForgotten(source.table('times'), target.table('times'));
  });
}

/** Gathered in memory for all logs together, then written in one transaction for each of them. */
const gatheredBytesMax = 32 * 1024 * 1024;

/** For estimates: this much of a log takes about as long to move as one record of another table. */
const bytesPerRecord = 512;

/** The device of the record at a position. */
export interface PlacedDevice {
  position: number;
  device: DeviceKey;
}

export function sizeOfLog(environment: Environment): DevicesSize {
  const { bytes } = environment.sizeOf('log');
  return { records: bytes / bytesPerRecord, bytes };
}

/** The position of the record that this shard's log takes next. */
export function endOfShardLog(environment: Environment): number {
  return endOfLog(environment.table('log'));
}

/** Behind the logs of other shards, each record behind that of its device's new shard. Ids stay. */
class LogsToExtend {
  readonly #gathered = new Map<Environment, ListedRecord[]>();
  #bytes = 0;

  add(target: Environment, record: ListedRecord): void {
    const records = this.#gathered.get(target);
    if (records === undefined) this.#gathered.set(target, [record]);
    else records.push(record);
    this.#bytes += record.bytes.length;
  }

  get isFull(): boolean {
    return this.#bytes >= gatheredBytesMax;
  }

  flush(): void {
    for (const [target, records] of this.#gathered) {
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
    this.#gathered.clear();
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

/** Of whom each record of a shard's log is, in order: batch by batch, so that the caller can pause between them. */
export function* devicesInLog(environment: Environment): Generator<Generator<PlacedDevice>> {
  for (const { key, value } of environment.table('log').getRange({})) {
    yield devicesInBatch(readSequence(key, 0), value);
  }
}

function* devicesInBatch(first: number, batch: Buffer): Generator<PlacedDevice> {
  for (const { index, at } of placesIn(batch)) {
    yield { position: first + index, device: deviceOfLogRecord(batch, at) };
  }
}

/**
 * Copies the log of a shard that is given up, in order, behind the logs of the shards that its devices go to.
 * Not to be done twice: `cutLog` takes it back.
 */
export function* moveLog(source: Environment, placeOf: (device: DeviceKey) => Environment): Generator<Step> {
  const logs = new LogsToExtend();
  for (const { value } of source.table('log').getRange({})) {
    for (const { device, record } of splitBatch(value)) logs.add(placeOf(device), record);
    if (logs.isFull) logs.flush();
    yield { passed: value.length / bytesPerRecord, devices: 0 };
  }
  logs.flush();
}

/** Removes what stands from that position on. */
export function cutLog(environment: Environment, end: number): void {
  const table = environment.table('log');
  const keys = [...table.getKeys({ start: sequenceKey(end) })];
  if (keys.length === 0) return;
  environment.writeSync(() => {
    for (const key of keys) table.removeSync(key);
  });
}
