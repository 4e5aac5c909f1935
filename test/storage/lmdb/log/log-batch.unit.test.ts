import { describe, expect, it } from 'vitest';
import type { DeviceKey } from '../../../../src/core/identity.ts';
import { generateUuid } from '../../../../src/core/uuid.ts';
import {
  batchHeaderBytes,
  countBatch,
  decodeBatch,
  encodeBatch,
  encodeListedBatch,
  entriesIn,
} from '../../../../src/storage/lmdb/log/log-batch.ts';
import { encodeLogRecord } from '../../../../src/storage/lmdb/log/log-record.ts';
import { cutBatch } from '../../../../src/storage/lmdb/log/log-trimmer.ts';

const bytesOf = (number: number): Buffer =>
  encodeLogRecord({
    device: `FLEET00${number % 2}DEVICE0001` as DeviceKey,
    kind: 'message',
    schema: 'note',
    payload: Buffer.from(`{"n":${number}}`),
    ...(number === 3 && { recordedAtMs: 1_000 }),
  });
const records = [0, 1, 2, 3, 4].map(bytesOf);
const length = records.reduce((sum, bytes) => sum + bytes.length, batchHeaderBytes);
const ingested = encodeBatch(generateUuid(), records, records.length, length);
const listed = encodeListedBatch(
  records.map((bytes) => ({ id: Buffer.from(generateUuid()), timeMs: 1, isRelocated: true, bytes })),
  0,
);
const cutOf = (batch: Buffer): Buffer => {
  const rest = cutBatch(batch, (fleetId) => fleetId === 'FLEET001')?.rest;
  if (rest === undefined) throw new Error('nothing remains');
  return rest;
};

/** Tells whether a walk refuses the batch. */
function refuses(walk: () => Iterable<unknown>): boolean {
  try {
    for (const _ of walk());
    return false;
  } catch (error) {
    expect(error).toBeInstanceOf(RangeError);
    return true;
  }
}

describe.each([
  ['ingested', ingested, 5],
  ['listed', listed, 5],
  ['cut of an ingested', cutOf(ingested), 3],
  ['cut of a listed', cutOf(listed), 3],
])('a batch (%s)', (_, batch, count) => {
  it('is read and counted alike', () => {
    expect([countBatch(batch), [...decodeBatch(batch)].length]).toEqual([count, count]);
  });

  it('that has other bytes anywhere is refused in reading exactly where it is in counting', () => {
    for (let at = 0; at < batch.length; at += 1) {
      for (const byte of [0, 0x7f, 0xff]) {
        const other = Buffer.from(batch);
        other[at] = byte;
        const isRefused = refuses(() => decodeBatch(other));
        expect([at, byte, isRefused]).toEqual([at, byte, countBatch(other) === undefined]);
      }
    }
  });

  it('that ends too early or too late is cut, moved and read by nobody', () => {
    const damaged = [batch.subarray(0, -1), Buffer.concat([batch, Buffer.from([0])]), Buffer.alloc(0)];
    for (const one of damaged) {
      expect([countBatch(one), refuses(() => entriesIn(one)), refuses(() => decodeBatch(one))]).toEqual([
        undefined,
        true,
        true,
      ]);
    }
  });
});
