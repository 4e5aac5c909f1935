import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { Channel } from '../../src/threads/relay/channel.ts';
import { WriteRelay, type WriteRelayOptions } from '../../src/threads/relay/write-relay.ts';

/** Port and options passed to the thread. */
export interface FarEnd {
  port: MessagePort;
  options: Omit<WriteRelayOptions, 'index' | 'onWrite'>;
}

/** Answers at once, so that nothing but the way there and back is measured. */
const { port, options } = workerData as FarEnd;
const crossing = new WriteRelay({
  ...options,
  index: 1,
  onWrite: (_write, completion) => completion.resolve('stored'),
});
const channel = new Channel(
  port,
  () => {},
  () => crossing.poll(),
);
crossing.connect(0, channel);
parentPort?.postMessage('ready');
