import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { deviceKeyOf } from '../../../src/core/identity.ts';
import { createLog } from '../../../src/core/telemetry/log.ts';
import { LogFollower } from '../../../src/features/records/log-follower.ts';
import { openShard } from '../../harness/storage/shard.ts';

it('fleets read the log in turns, however many readers one of them has', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
  const opened = openShard(folder, { commitDelayMilliseconds: 0 });
  const follower = new LogFollower([opened.shard], createLog('silent'));
  const order: string[] = [];
  const read = async (fleetId: string, reading: Promise<unknown>): Promise<void> => {
    await reading;
    order.push(fleetId);
  };
  const device = deviceKeyOf('FLEET002', 'PUMP000001');
  const span = { from: 0, to: 1, isNewestFirst: true, recordsMax: 1 };
  await Promise.all([
    ...Array.from({ length: 20 }, () => read('FLEET001', follower.page('FLEET001', 0, 0))),
    ...Array.from({ length: 20 }, () => read('FLEET001', follower.pageBefore('FLEET001', 0, 0))),
    read('FLEET002', follower.ofDevice(0, device, span)),
    read('FLEET003', follower.page('FLEET003', 0, 0)),
  ]);
  expect(order.slice(0, 8)).toEqual(expect.arrayContaining(['FLEET002', 'FLEET003']));
  await opened.close();
  rmSync(folder, { recursive: true });
});
