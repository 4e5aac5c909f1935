import type { EnqueueOutcome } from '../../src/domain/mail/mail.ts';
import { atOnce, type Group, type Microbench, repeated } from './microbench.ts';
import { cycled, payload } from './samples.ts';
import { openTemporaryShard } from './temporary-shard.ts';

const deviceCount = 1_000;
const batches = [1, 16, 256];

/** A mailbox through the `Shard` seam on a real disk: what is written is fsynced when it settles. */
export async function mailbox(): Promise<Group> {
  const { shard, devices, ...opened } = await openTemporaryShard(deviceCount);
  let turn = 0;
  const nextDevice = () => cycled(devices, turn++).device.device;
  const deviceKeys = devices.map(({ device }) => device.device);
  const enqueue = (): Promise<EnqueueOutcome> =>
    shard.mail.enqueue({
      device: nextDevice(),
      name: 'water',
      payload: new Uint8Array(payload),
      ttlSeconds: 604_800,
      mailboxMailsMax: Number.MAX_SAFE_INTEGER,
    });
  const mustQueue = async (): Promise<void> => {
    const { result } = await enqueue();
    if (result !== 'queued') throw new Error(`a mail was not queued: ${result}`);
  };
  await Promise.all(deviceKeys.map(mustQueue));

  const acked = (batch: number): Microbench => {
    let waiting: { device: (typeof deviceKeys)[number]; mailId: Uint8Array }[] = [];
    return atOnce(
      'ack',
      batch,
      async (index) => {
        const { result } = await shard.mail.settle({ ...cycled(waiting, index), verb: 'ack' });
        if (result !== 'settled') throw new Error(`a mail was not acknowledged: ${result}`);
      },
      async () => {
        const from = turn;
        const outcomes = await Promise.all(Array.from({ length: batch }, enqueue));
        waiting = outcomes.map((outcome, index) => {
          if (outcome.result !== 'queued') throw new Error(`a mail was not queued: ${outcome.result}`);
          return { device: cycled(deviceKeys, from + index), mailId: outcome.mailId };
        });
      },
    );
  };
  return {
    benches: [
      ...batches.map((batch) => atOnce('enqueue', batch, mustQueue)),
      ...batches.map(acked),
      repeated('mailbox head', (index) => shard.mail.head(cycled(deviceKeys, index))),
      repeated('mailbox size', (index) => shard.mail.size(cycled(deviceKeys, index))),
    ],
    [Symbol.asyncDispose]: opened[Symbol.asyncDispose],
  };
}
