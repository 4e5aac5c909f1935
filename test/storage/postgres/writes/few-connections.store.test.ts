/** The writer and the activity notes of a shard with few connections. */

import { expect, it } from 'vitest';
import { createLog } from '../../../../src/core/telemetry/log.ts';
import { ActivityNotes } from '../../../../src/device-api/auth/activity.ts';
import { DeviceMarks } from '../../../../src/domain/devices/device-marks.ts';
import { newDevice } from '../../../../src/domain/devices/new-device.ts';
import { openPostgresShard } from '../../../../src/storage/postgres/writes/open-shard.ts';
import type { PostgresShard } from '../../../../src/storage/postgres/writes/postgres-shard.ts';
import { createServed } from '../../../harness/postgres/postgres.ts';
import { optionsOf } from '../../contract/postgres-engine.ts';
import { deviceOf, mailFor } from '../mail-node.ts';

/** Connections, as many as leave the writer one transaction at a time: what it misses, no other takes. */
const connectionsMax = 2;

async function open(): Promise<PostgresShard> {
  // Nothing of its own is written meanwhile, which would take along what was left behind.
  const quiet = { sweepMilliseconds: 600_000 };
  return openPostgresShard({ ...optionsOf(await createServed(), quiet), connectionsMax });
}

/** Settles so many promises behind the task. */
async function behind(depth: number, task: () => Promise<unknown>): Promise<void> {
  if (depth === 0) await task();
  else await behind(depth - 1, task);
}

it('a write that comes as the writer ends is not left behind, however deep its caller; nor is it when it closes', async () => {
  const shard = await open();
  const send = (): Promise<unknown> => shard.mail.enqueue(mailFor(deviceOf(1)));
  for (let depth = 0; depth < 8; depth += 1) {
    await behind(depth, send);
    await send();
  }
  await behind(1, send);
  const last = send();
  await shard.close();
  await expect(Promise.race([last, 'left'])).resolves.not.toBe('left');
});

it('the last-seen times of more devices than one write takes are all written when the notes close', async () => {
  const shard = await open();
  const made = Array.from({ length: 2_507 }, () => newDevice('FLEET001', {}).device);
  for (let start = 0; start < made.length; start += 500) {
    expect(await shard.devices.create(made.slice(start, start + 500))).toBeUndefined();
  }
  const notes = new ActivityNotes({
    shards: { of: () => shard },
    flushSeconds: 600,
    watched: new DeviceMarks(),
    log: createLog('silent'),
  });
  for (const { device } of made) notes.seen({ device, note: undefined });
  await notes.close();
  const found = await Promise.all(made.map(({ device }) => shard.devices.get(device)));
  expect(found.filter((one) => one?.lastSeenMs !== undefined)).toHaveLength(made.length);
  await shard.close();
});
