import { MessageChannel, Worker } from 'node:worker_threads';
import { encodeLogRecord } from '../../src/storage/lmdb/log/log-record.ts';
import type { Write } from '../../src/storage/lmdb/shard/write.ts';
import { Channel } from '../../src/threads/relay/channel.ts';
import { allocateWriteRelay } from '../../src/threads/relay/ring.ts';
import { WriteRelay } from '../../src/threads/relay/write-relay.ts';
import type { FarEnd } from './crossing-far-end.ts';
import { atOnce, type Group } from './microbench.ts';
import { payload, sampleDevice } from './samples.ts';

const batches = [1, 4, 16, 64, 256];
const ends = { workers: 2, memory: allocateWriteRelay(2), commitDelayMilliseconds: 0 };
const depth = new Int32Array(new SharedArrayBuffer(4));

/** A datapoint's way to another thread and its answer's way back, each end woken whenever it sleeps. */
export async function crossing(): Promise<Group> {
  const { port1, port2 } = new MessageChannel();
  const worker = new Worker(new URL('crossing-far-end.ts', import.meta.url), {
    workerData: { port: port2, options: { ...ends, depth } } satisfies FarEnd,
    transferList: [port2],
  });
  await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
  const near = new WriteRelay({ ...ends, depth, index: 0, onWrite: () => {} });
  const channel = new Channel(
    port1,
    () => {},
    () => near.poll(),
  );
  near.connect(1, channel);
  const { device } = sampleDevice().device;
  const write = (): Write => ({
    type: 'ingest',
    params: { device, record: encodeLogRecord({ device, kind: 'datapoint', schema: 'reading', payload }) },
  });
  const send = (): Promise<unknown> =>
    new Promise((resolve, reject) => {
      if (!near.send(1, write(), { resolve, reject })) reject(new Error('the ring is full'));
    });
  return {
    benches: batches.map((batch) => atOnce('write to another thread and its answer', batch, send)),
    [Symbol.asyncDispose]: async () => {
      channel.close();
      await worker.terminate();
    },
  };
}
