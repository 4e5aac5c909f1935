import { rmSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createLog } from '../../../../src/core/telemetry/log.ts';
import { Fleets } from '../../../../src/declarations/fleet.ts';
import { Hold } from '../../../../src/domain/hold.ts';
import { Broadcaster } from '../../../../src/features/broadcasts/delivery/broadcaster.ts';
import { openControl } from '../../../../src/maintenance/environments.ts';
import { temporaryFolder } from '../../../harness/machine/temporary-folder.ts';
import { configWith } from '../../../harness/server/config.ts';
import { openShard } from '../../../harness/storage/shard.ts';

it('a broadcast whose shard takes nothing leaves its turns to others', async () => {
  const folders = [temporaryFolder(), temporaryFolder(), temporaryFolder()] as const;
  const journal = openControl(folders[0], { mapBytesMax: 1024 ** 3, diskFreeBytesMin: 1 });
  const [well, away] = [openShard(folders[1]), openShard(folders[2])];
  // Its writes are refused from here on, as those of a full disk are.
  await away.close();
  const config = configWith({ broadcastMailsPerSecondMax: 1_000_000 });
  const broadcaster = new Broadcaster({
    config,
    journal,
    fleets: new Fleets([], { settings: config.settings, defersCompiling: false, onDisabled: () => {} }),
    shards: { of: (device) => (device.includes('AWAY') ? away : well).shard, all: [well.shard, away.shard] },
    hold: new Hold(),
    isBackupRunning: () => false,
    log: createLog('silent'),
  });
  const put = async (fleetId: string, name: string, count: number) => {
    const devices = Array.from({ length: count }, (_, i) => `${name}${String(i).padStart(6, '0')}`);
    return (await broadcaster.put(fleetId, { name: 'note', payload: Buffer.from('{}'), to: { devices } }))
      .key;
  };
  const stuck = await put('FLEET001', 'AWAY', 10);
  const other = await put('FLEET002', 'WELL', 100);
  await expect.poll(() => broadcaster.status(other)?.state).toBe('done');
  expect(broadcaster.status(other)?.reasons).toEqual({ device_not_found: 100 });
  expect(broadcaster.status(stuck)).toMatchObject({ state: 'running', queued: 0, refused: 0 });
  await broadcaster.stop();
  await well.close();
  await journal.close();
  for (const folder of folders) rmSync(folder, { recursive: true });
});
