import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { SmallDisk } from '../harness/machine/small-disk.ts';
import { fleetpost } from '../harness/server/command.ts';
import { shards, TestServer } from '../harness/server/server.ts';

it('a folder on a read-only disk is refused in a sentence', async () => {
  using disk = new SmallDisk(16);
  const data = join(disk.path, 'data');
  {
    await using server = await TestServer.start();
    expect(await server.stop()).toBe(0);
    cpSync(server.report.data, data, { recursive: true });
  }
  disk.setReadOnly();
  const loopback = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
  const { status, stderr } = await fleetpost([
    'serve',
    '--data',
    data,
    '--shards',
    String(shards),
    ...loopback,
  ]);
  expect(status).toBe(1);
  expect(stderr).toMatch(/cannot be used: EROFS/);
});
