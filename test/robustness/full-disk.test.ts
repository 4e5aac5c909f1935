import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createFleet } from '../harness/device.ts';
import { TestServer, temporaryFolder } from '../harness/server.ts';

function fill(file: string): void {
  const fd = openSync(file, 'w');
  const chunk = Buffer.alloc(4096);
  try {
    for (;;) writeSync(fd, chunk);
  } catch (e) {
    console.log((e as Error).message);
  }
  closeSync(fd);
}

it('draft', async () => {
  const folder = temporaryFolder();
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', folder]);
  const data = join(folder, 'data');
  let srv: TestServer;
  try {
    const server = (srv = await TestServer.start({ logLevel: 'info' } as never, data));
    const fleet = await createFleet(server);
    const devices = [];
    for (let i = 0; i < 6; i++) {
      const d = await fleet.createDevice();
      await d.sendMail();
      await d.sendMail();
      devices.push(d);
    }
    console.log(statfsSync(folder));
    fill(join(folder, 'ballast'));
    const counts: Record<string, number> = {};
    const t0 = Date.now();
    for (let i = 0; i < 300; i++) {
      const d = devices[i % 6]!;
      const body = { x: 'a'.repeat(2000) };
      const a = await d.request('POST', '/v1/datapoint/reading', body);
      counts[`dp ${a.status} ${a.text} ${a.headers.get('retry-after')}`] =
        (counts[`dp ${a.status} ${a.text} ${a.headers.get('retry-after')}`] ?? 0) + 1;
      const h = await d.heartbeat();
      counts[`hb ${h.status}`] = (counts[`hb ${h.status}`] ?? 0) + 1;
      const n = await d.next();
      counts[`next ${n.status}`] = (counts[`next ${n.status}`] ?? 0) + 1;
      if (i % 20 === 0) {
        const m = await d.settle('requeue', n.headers.get('x-mail-id')!);
        counts[`requeue ${m.status}`] = (counts[`requeue ${m.status}`] ?? 0) + 1;
        const mm = await d.sendMail();
        counts[`mail ${mm.status}`] = (counts[`mail ${mm.status}`] ?? 0) + 1;
        const f = await server.admin('POST', '/fleets', {});
        counts[`fleet ${f.status} ${JSON.stringify(f.body)}`] =
          (counts[`fleet ${f.status} ${JSON.stringify(f.body)}`] ?? 0) + 1;
      }
    }
    console.log(Date.now() - t0, counts);
    console.log(server.isRunning, server.stderr.slice(0, 6000), server.stderr.length);
    rmSync(join(folder, 'ballast'));
    for (let i = 0; i < 12; i++) {
      const d = devices[i % 6]!;
      const a = await d.request('POST', '/v1/datapoint/reading', { after: i });
      console.log('after', a.status, a.text);
    }
    const f = await server.admin('POST', '/fleets', {});
    console.log(f.status);
    console.log(await server.stop());
  } catch (e) {
    console.log(e, srv!.process.exitCode, srv!.process.signalCode, srv!.stderr.slice(0, 8000));
    throw e;
  } finally {
    execFileSync('umount', ['-l', folder]);
  }
}, 120_000);
