import { MessageChannel } from 'node:worker_threads';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ApiError } from '../../../src/core/errors.ts';
import { deviceKeyOf } from '../../../src/core/identity.ts';
import type { Completion } from '../../../src/domain/write.ts';
import { encodeLogRecord } from '../../../src/storage/lmdb/log/log-record.ts';
import type { Write, WriteAnswer } from '../../../src/storage/lmdb/shard/write.ts';
import { Channel } from '../../../src/threads/relay/channel.ts';
import type { Notice } from '../../../src/threads/relay/messages.ts';
import { allocateWriteRelay } from '../../../src/threads/relay/ring.ts';
import { WriteRelay } from '../../../src/threads/relay/write-relay.ts';

const device = deviceKeyOf('FLEET001', 'DEVICE0001');

interface End {
  crossing: WriteRelay;
  channel: Channel;
  depth: Int32Array<SharedArrayBuffer>;
}

let ends: [near: End, far: End];
let received: Write[];
/** Answer of the far end to a write. */
let answer: (write: Write, completion: Completion<WriteAnswer>) => void;

beforeEach(() => {
  const memory = allocateWriteRelay(2);
  const { port1, port2 } = new MessageChannel();
  received = [];
  const open = (index: number, port: typeof port1): End => {
    const depth = new Int32Array(new SharedArrayBuffer(4));
    const onWrite = (write: Write, completion: Completion<WriteAnswer>): void => {
      received.push(write);
      answer(write, completion);
    };
    const crossing = new WriteRelay({
      index,
      workers: 2,
      memory,
      commitDelayMilliseconds: 2,
      depth,
      onWrite,
    });
    const onNotice = (notice: Notice): void => {
      if (notice.type === 'wake') crossing.poll();
      else if (notice.type === 'answered') crossing.complete(notice.call, notice.answer);
      else if (notice.type === 'refused') {
        crossing.complete(notice.call, new ApiError(notice.code, notice.options));
      }
    };
    const channel = new Channel(port, () => {}, onNotice);
    crossing.connect(1 - index, channel);
    return { crossing, channel, depth };
  };
  ends = [open(0, port1), open(1, port2)];
});
afterEach(() => {
  for (const { crossing, channel } of ends) {
    crossing.close();
    channel.close();
  }
});

function datapoint(number: number, idempotency?: { key: Uint8Array; digest: Uint8Array }): Write {
  const payload = Buffer.from(`{"n":${number}}`);
  const record = encodeLogRecord({ device, kind: 'datapoint', schema: 'reading', payload });
  return { type: 'ingest', params: { device, record, ...(idempotency && { idempotency }) } };
}

/** Undefined when the ring does not take it. */
function send(write: Write): Promise<WriteAnswer> | undefined {
  let taken = false;
  const settled = new Promise<WriteAnswer>((resolve, reject) => {
    taken = ends[0].crossing.send(1, write, { resolve, reject });
  });
  return taken ? settled : undefined;
}

it('each kind of write arrives as it was sent, and so does its answer', async () => {
  const idempotency = { key: Buffer.alloc(16, 1), digest: Buffer.alloc(32, 2) };
  const mailId = Buffer.alloc(16, 3);
  const writes: Write[] = [
    datapoint(1),
    datapoint(2, idempotency),
    ...(['ack', 'reject', 'requeue'] as const).map(
      (verb): Write => ({ type: 'settle', params: { device, mailId, verb } }),
    ),
  ];
  const answers: WriteAnswer[] = [
    'stored',
    'replayed',
    { result: 'settled', mailboxSize: 4_294_967_295 },
    { result: 'not_found', mailboxSize: 0 },
    { result: 'already_settled', mailboxSize: 7 },
  ];
  answer = (_write, { resolve }) => resolve(answers[received.length - 1]);
  expect(await Promise.all(writes.map(send))).toEqual(answers);
  expect(received).toEqual(writes);
});

it('a refusal arrives with its code and its options', async () => {
  answer = (_write, { reject }) => reject(new ApiError('unavailable', { retryAfterSeconds: 5 }));
  await expect(send(datapoint(1))).rejects.toMatchObject({
    code: 'unavailable',
    options: { retryAfterSeconds: 5 },
  });
});

it('a defect of the far end arrives as an internal error', async () => {
  answer = (_write, { reject }) => reject(new TypeError('a defect'));
  await expect(send(datapoint(1))).rejects.toMatchObject({ code: 'internal_error' });
});

it('a full ring takes no more, and every write that it took is answered once', async () => {
  answer = (_write, { resolve }) => resolve('stored');
  const taken: Promise<WriteAnswer>[] = [];
  let refused = 0;
  for (let number = 0; number < 20_000; number += 1) {
    const settled = send(datapoint(number));
    if (settled === undefined) refused += 1;
    else taken.push(settled);
  }
  expect(refused).toBeGreaterThan(0);
  const answers = await Promise.all(taken);
  expect(new Set(answers)).toEqual(new Set(['stored']));
  expect(received).toHaveLength(taken.length);
  expect(await send(datapoint(0))).toBe('stored');
});

it('answers that come later, and out of order, find their calls, whether the ends are busy or not', async () => {
  const held: Completion<WriteAnswer>[] = [];
  answer = (_write, completion) => {
    held.push(completion);
    Atomics.add(ends[1].depth, 0, 1);
  };
  for (const count of [1, 3, 40, 2]) {
    const calls = Array.from({ length: count }, (_, number) => send(datapoint(number)));
    await expect.poll(() => held.length).toBe(count);
    const completions = held.splice(0).map((completion, index) => ({ completion, mailboxSize: index }));
    for (const { completion, mailboxSize } of completions.reverse()) {
      Atomics.sub(ends[1].depth, 0, 1);
      completion.resolve({ result: 'settled', mailboxSize });
    }
    expect(await Promise.all(calls)).toEqual(
      Array.from({ length: count }, (_, mailboxSize) => ({ result: 'settled', mailboxSize })),
    );
  }
});

it('writes with no frame of their own, and too large ones, are left to the port', () => {
  expect(send({ type: 'sweep', params: 'due' })).toBeUndefined();
  const large = { device, record: Buffer.alloc(70_000) };
  expect(send({ type: 'ingest', params: large })).toBeUndefined();
});
