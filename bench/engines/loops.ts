import type { DeviceKey } from '../../src/core/identity.ts';
import { generateUuid } from '../../src/core/uuid.ts';
import type { Enqueue } from '../../src/domain/mail/mail.ts';
import type { Shard } from '../../src/domain/shard.ts';
import { payload } from '../micro/samples.ts';

/** An operation that one caller repeats for a device, as the front end does it. */
type Operation = (shard: Shard, device: DeviceKey) => Promise<void>;

const digest = Buffer.alloc(32, 1);
const ttlSeconds = 3_600;
const mailboxMailsMax = 1_000;

export const operations = {
  async heartbeat(shard, device) {
    const found = await shard.devices.credentials(device);
    if (found === undefined) throw new Error('there is no such device');
    if (found.mailboxSize === undefined) await shard.mail.size(device);
  },
  async ingest(shard, device) {
    const idempotency = { key: generateUuid(), digest };
    const outcome = await shard.log.append({
      device,
      kind: 'datapoint',
      schema: 'reading',
      payload,
      idempotency,
    });
    if (outcome !== 'stored') throw new Error(outcome);
  },
  async cycle(shard, device) {
    const mail: Enqueue = { device, name: 'note', payload, ttlSeconds, mailboxMailsMax };
    const queued = await shard.mail.enqueue(mail);
    if (queued.result !== 'queued') throw new Error(queued.result);
    if ((await shard.mail.head(device)).mail === undefined) throw new Error('there is no mail');
    const settled = await shard.mail.settle({ device, mailId: queued.mailId, verb: 'ack' });
    if (settled.result !== 'settled') throw new Error(settled.result);
  },
} satisfies Record<string, Operation>;

export type OperationName = keyof typeof operations;

export interface LoopOptions {
  operation: OperationName;
  callers: number;
  seconds: number;
}

/** Operations done by a loop, their duration, and the CPU time of this process, its threads included. */
export interface LoopResult {
  operations: number;
  seconds: number;
  cpuMicroseconds: number;
}

/** A closed loop: each caller has a device of its own, and asks again when it is answered. */
export async function loop(
  shard: Shard,
  devices: readonly DeviceKey[],
  { operation, callers, seconds }: LoopOptions,
): Promise<LoopResult> {
  let count = 0;
  const run = operations[operation];
  const startMs = performance.now();
  const startCpu = process.cpuUsage();
  const endMs = startMs + seconds * 1_000;
  await Promise.all(
    devices.slice(0, callers).map(async (device) => {
      while (performance.now() < endMs) {
        await run(shard, device);
        count += 1;
      }
    }),
  );
  const { user, system } = process.cpuUsage(startCpu);
  return {
    operations: count,
    seconds: (performance.now() - startMs) / 1_000,
    cpuMicroseconds: user + system,
  };
}
