/** Decisions D9 and D22: large bodies and Expect, as curl sends them. */

import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, type TestDevice } from '../harness/devices/device.ts';
import { temporaryFolder } from '../harness/machine/temporary-folder.ts';
import { execute } from '../harness/server/command.ts';
import { TestServer } from '../harness/server/server.ts';

const limit = 65_536;
const folder = temporaryFolder();
let server: TestServer;
let device: TestDevice;

beforeAll(async () => {
  server = await TestServer.start();
  device = await (await createFleet(server)).createDevice();
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** Arguments for curl in front of any URL. */
function common(headers: Record<string, string> = {}): string[] {
  const all = Object.entries({ ...device.credentials, 'Content-Type': 'application/json', ...headers });
  const lines = all.flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  return ['-sS', '--cacert', server.report.cert_file, '-o', '/dev/null', ...lines];
}

/** Statuses of a datapoint with that body, and of a heartbeat behind it. */
async function send(body: string, headers: Record<string, string>): Promise<number[]> {
  const file = join(folder, 'body');
  writeFileSync(file, body);
  const code = ['-w', '%{http_code}\n'];
  const { status, stdout, stderr } = await execute('curl', [
    ...[...common(headers), ...code, '--data-binary', `@${file}`, `${server.url}/v1/datapoint/reading`],
    ...['--next', ...common(), ...code, '-X', 'POST', `${server.url}/v1/heartbeat`],
  ]);
  expect([status, stderr]).toEqual([0, '']);
  return stdout.trim().split('\n').map(Number);
}

function bodyOf(bytes: number): string {
  return `{"a":"${'x'.repeat(bytes - 8)}"}`;
}

describe.each([
  ['declared', {}],
  ['chunked', { 'Transfer-Encoding': 'chunked' }],
])('D9: a body from curl, %s', (_, headers: Record<string, string>) => {
  it('is taken at 65,536 bytes', async () => expect(await send(bodyOf(limit), headers)).toEqual([201, 201]));

  it.each([limit + 1, 1_000_000, 1_048_576, 1_048_577, 20_000_000])(
    'gets a 413 that can be read at %i bytes, and the client goes on',
    async (bytes) => expect(await send(bodyOf(bytes), headers)).toEqual([413, 201]),
  );
});

it('D22: Expect: 100-continue does not cost a device a second', async () => {
  const { stdout } = await execute('curl', [
    ...[...common({ Expect: '100-continue' }), '-w', '%{http_code} %{time_total}'],
    // Without an answer to its question curl waits this long.
    ...['--expect100-timeout', '20', '--data-binary', '{"a":1}', `${server.url}/v1/datapoint/reading`],
  ]);
  const [status, seconds] = stdout.split(' ').map(Number);
  expect(status).toBe(201);
  expect(seconds).toBeLessThan(10);
});
