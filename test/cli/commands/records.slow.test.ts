import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { createFleet } from '../../harness/devices/device.ts';
import { mainFile, TestServer, temporaryFolder } from '../../harness/server/server.ts';

it('tail prints what is stored, and goes on where it was when the server comes back', async () => {
  const folder = temporaryFolder();
  let server = await TestServer.start({}, folder);
  onTestFinished(async () => {
    await server[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  const fleet = await createFleet(server);
  await fleet.putSchema('message', '-formula', { type: 'object' });
  const device = await fleet.createDevice();
  for (let n = 0; n < 4; n += 1) await device.request('POST', '/v1/msg/-formula', `{"n":${n}}`);
  const args = ['tail', '--fleet', fleet.fleetId, '--data', folder, '--since', '1h', '--schema', '-formula'];
  const child = spawn(process.execPath, [mainFile, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    text += more;
  });
  const numbers = (): number[] =>
    [...text.matchAll(/-formula {2}\{"n":(\d+)\}\n/g)].map(([, n]) => Number(n));
  const patience = { timeout: 50_000 };
  await expect.poll(numbers, patience).toEqual([0, 1, 2, 3]);
  await device.request('POST', '/v1/msg/-formula', '{"n":4}');
  await expect.poll(numbers, patience).toEqual([0, 1, 2, 3, 4]);
  // One that is followed does not hold up the end.
  expect(await server.stop()).toBe(0);
  server = await TestServer.start({}, folder);
  await device.on(server).request('POST', '/v1/msg/-formula', '{"n":5}');
  await expect.poll(numbers, patience).toEqual([0, 1, 2, 3, 4, 5]);
  child.kill();
  await once(child, 'exit');
});
