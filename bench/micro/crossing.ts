import { MessageChannel, Worker } from 'node:worker_threads';
import type { Write } from '../../src/storage/lmdb/shard/write.ts';
import { built, builtUrl } from '../built.ts';
import { atOnce, type Group } from './microbench.ts';
import { payload, sampleDevice } from './samples.ts';

const { Channel } =
  await built<typeof import('../../src/threads/relay/channel.ts')>('threads/relay/channel.js');
const { allocateWriteRelay } =
  await built<typeof import('../../src/threads/relay/ring.ts')>('threads/relay/ring.js');
const { WriteRelay } = await built<typeof import('../../src/threads/relay/write-relay.ts')>(
  'threads/relay/write-relay.js',
);
const { encodeLogRecord } = await built<typeof import('../../src/storage/lmdb/log/log-record.ts')>(
  'storage/lmdb/log/log-record.js',
);

const batches = [1, 4, 16, 64, 256];
const ends = { workers: 2, memory: allocateWriteRelay(2), commitDelayMilliseconds: 0 };
const depth = new Int32Array(new SharedArrayBuffer(4));

/**
 * Answers at once, so that nothing but the way there and back is measured. As text, for tsx does not compile
 * what a worker loads.
 */
const farEnd = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { modules, port, options } = workerData;
  Promise.all(modules.map((url) => import(url))).then(([{ Channel }, { WriteRelay }]) => {
    const channel = new Channel(port, () => {}, () => crossing.poll());
    const onWrite = (write, completion) => completion.resolve('stored');
    const crossing = new WriteRelay({ ...options, index: 1, onWrite });
    crossing.connect(0, channel);
    parentPort.postMessage('ready');
  });
`;

/** A datapoint's way to another thread and its answer's way back, each end woken whenever it sleeps. */
export async function crossing(): Promise<Group> {
  const { port1, port2 } = new MessageChannel();
  const modules = ['threads/relay/channel.js', 'threads/relay/write-relay.js'].map(builtUrl);
  const worker = new Worker(farEnd, {
    eval: true,
    workerData: { port: port2, modules, options: { ...ends, depth } },
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
