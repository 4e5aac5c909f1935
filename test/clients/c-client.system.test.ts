/** The C client: its sanitizers, its requests, and the size of its ports. */

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { createFleet } from '../harness/devices/device.ts';
import { TestServer, temporaryFolder } from '../harness/server/server.ts';
import { until } from '../harness/server/vitals.ts';
import { buildWithC } from './c-client.ts';
import { ClientProcess, clients } from './client-process.ts';

const client = fileURLToPath(new URL('../../clients/c', import.meta.url));

function make(...variables: string[]): string {
  const folder = temporaryFolder();
  execFileSync('make', ['-C', client, `BUILD=${folder}`, ...variables], { stdio: 'pipe' });
  return folder;
}

it('parsers and device of the C client survive what no server would say, under ASan and UBSan', () => {
  const seed = String(Math.floor(Math.random() * 2 ** 31));
  const said = execFileSync(buildWithC('c-hostile.c'), ['100000', seed], { encoding: 'utf8' });
  expect(said, `seed ${seed}`).toBe('100000 mutations, 1000 devices\n');
  const ofSync = execFileSync(buildWithC('c-hostile-sync.c'), ['10000', seed], { encoding: 'utf8' });
  expect(ofSync, `seed ${seed}`).toBe('10000 mutations\n');
});

it('a C client that polls takes its mail without an event stream, one connection in all', async () => {
  await using server = await TestServer.start();
  const device = await (await createFleet(server)).createDevice();
  await using client = new ClientProcess(clients['C (OpenSSL)'], {
    url: `https://127.0.0.1:${server.port}`,
    fleet: device.fleetId,
    id: device.deviceId,
    secret: device.secret,
    ca: server.report.cert_file,
    queue: join(temporaryFolder(), 'queue'),
    start_delay_seconds: 0,
    polls: true,
  });
  client.takeMail();
  for (const verb of ['ack', 'reject', 'requeue']) {
    await device.sendMail('order', JSON.stringify({ verb }));
    await until(async () => (await device.mails()).length === 0);
  }
  expect(client.of('mail')).toHaveLength(4);
  const metrics = await (await fetch(`${server.report.admin_url}/metrics`)).text();
  expect(metrics).toMatch(/^fleetpost_streams_open\S* 0$/m);
  expect(metrics).not.toMatch(/^fleetpost_streams_open\S* [1-9]/m);
  const requests = metrics.match(/^fleetpost_requests_total\{.*\}/gm);
  // It may call before it is told to take mail.
  const others = requests?.filter((line) => !line.includes('POST /v1/heartbeat'));
  expect(others).toEqual(['fleetpost_requests_total{route="POST /v1/sync",status="200"}']);
});

it.each(['openssl', 'mbedtls'])('make builds the library and the example with %s', (tls) => {
  const folder = make(`TLS=${tls}`);
  expect(readdirSync(folder)).toEqual(expect.arrayContaining(['libfleetpost.a', `example-${tls}`]));
});

it('the core of the C client calls nothing that allocates, prints or waits', () => {
  const folder = make('CFLAGS=-Os');
  const symbols = execFileSync('nm', ['-u', join(folder, 'libfleetpost.a')], { encoding: 'utf8' });
  const called = [...symbols.matchAll(/ U (\w+)/g)].map(([, name = '']) => name);
  const foreign = new Set(called.filter((name) => !name.startsWith('fleetpost_')));
  const allowed = /^(_GLOBAL_OFFSET_TABLE_|mem(cmp|cpy|move|set)|str(chr|cmp|len|ncmp|str))$/;
  expect([...foreign].filter((name) => !allowed.test(name))).toEqual([]);
});

it('each port of the C client has at most 150 lines', () => {
  for (const name of readdirSync(join(client, 'ports'))) {
    const lines = readFileSync(join(client, 'ports', name), 'utf8').split('\n').length - 1;
    expect(lines, name).toBeLessThanOrEqual(150);
  }
});
