/** Programs of `clients/quickstart`, run against a server. */

import { spawn } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { anyObject, createFleet, type TestFleet } from '../harness/devices/device.ts';
import { TestServer, temporaryFolder } from '../harness/server/server.ts';
import { until } from '../harness/server/vitals.ts';

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  server = await TestServer.start();
  fleet = await createFleet(server);
  await fleet.putSchema('datapoint', 'flow', anyObject);
});
afterAll(() => server[Symbol.asyncDispose]());

it.each([
  ['pump.mjs', 'node', 'dist/device.mjs'],
  ['pump.py', 'python3', 'clients/python/fleetpost.py'],
])(
  'the program of the quickstart, %s, sends its datapoint and handles its mail',
  async (file, program, client) => {
    const device = await fleet.createDevice();
    await device.sendMail('water', '{"seconds":30}');
    const folder = temporaryFolder();
    const text = readFileSync(at(`clients/quickstart/${file}`), 'utf8')
      .replace('https://127.0.0.1:8443', server.url)
      .replace('ORCHARD1', device.fleetId)
      .replace('PUMP000001', device.deviceId)
      .replace('FOS-…', device.secret)
      .replace('data/tls/cert.pem', server.report.cert_file);
    writeFileSync(join(folder, file), text);
    copyFileSync(at(client), join(folder, client.split('/').at(-1) ?? ''));
    const child = spawn(program, [file], { cwd: folder, env: { ...process.env, PYTHONUNBUFFERED: '1' } });
    try {
      let printed = '';
      child.stdout.on('data', (part) => {
        printed += part;
      });
      await until(async () => (await device.mails()).length === 0);
      expect(printed).toMatch(/^water .*seconds.*30/);
      const path = `/fleets/${device.fleetId}/records?device=${device.deviceId}&kind=datapoint`;
      const found = async (): Promise<boolean> =>
        JSON.stringify(await server.admin('GET', path)).includes('12.5');
      await until(found);
    } finally {
      child.kill('SIGKILL');
    }
  },
);
