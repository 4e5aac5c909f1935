import { expect, it } from 'vitest';
import { createFleet, TestDevice } from '../../harness/devices/device.ts';
import { RawConnection, requestText } from '../../harness/devices/raw.ts';
import { withTypeScript } from '../../harness/machine/typescript.ts';
import { TestServer } from '../../harness/server/server.ts';

const marker = 'PAYLOADMARKER';

interface Line {
  request_id?: string;
  route?: string;
  [field: string]: unknown;
}

it('admin requests are logged under the id they are answered with; no secret, token or payload is', async () => {
  await using server = await TestServer.start({ logLevel: 'trace' });
  const { admin_url } = server.report;
  const ask = async (path: string, token: string, init: { body?: string; id?: string } = {}) => {
    const answer = await fetch(`${admin_url}${path}`, {
      method: init.body === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        ...(init.id !== undefined && { 'x-request-id': init.id }),
      },
      ...(init.body !== undefined && { body: init.body }),
    });
    await answer.text();
    return { status: answer.status, id: answer.headers.get('x-request-id') ?? '' };
  };
  const fleet = await createFleet(server);
  const device = await fleet.createDevice({ name: marker });
  await device.heartbeat();
  await device.request('POST', '/v1/datapoint/reading', `{"${marker}":1}`);
  await device.request('POST', '/v1/datapoint/reading', `{"${marker}":`);
  await device.request('POST', `/v1/msg/${marker}`, '{}');
  await device.sendMail('note', `{"${marker}":1}`);
  const wrongSecret = `FOS-${'W'.repeat(32)}`;
  expect(
    (await new TestDevice(server, device.fleetId, device.deviceId, wrongSecret).heartbeat()).status,
  ).toBe(401);
  const spoilt = await RawConnection.open(server);
  spoilt.write(requestText('POST', '/v1/heartbeat', { ...device.credentials, 'Content-Length': 'x' }));
  await spoilt.answer();

  const made = await ask('/admin/v1/fleets', server.token, { body: `{"name":"${marker}"}`, id: 'mine.1' });
  expect(made).toEqual({ status: 201, id: 'mine.1' });
  const strange = await ask('/admin/v1/fleets', server.token, { body: `{"${marker}":`, id: 'two words' });
  expect(strange).toMatchObject({ status: 400, id: expect.stringMatching(/^[0-9a-f-]{36}$/) });
  const unknown = await ask(`/admin/v1/${marker}/%zz`, server.token);
  expect(unknown).toEqual({ status: 400, id: expect.stringMatching(/^[0-9a-f-]{36}$/) });
  expect((await ask('/admin/v1/fleets', 'TOKENOFSOMEBODYELSE')).status).toBe(401);
  const read = await ask(`/admin/v1/fleets/${fleet.fleetId}?after=${marker}`, server.token);

  const lines = (): Line[] =>
    server.stderr
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Line);
  await expect.poll(() => lines().some(({ request_id }) => request_id === read.id)).toBe(true);
  const lineOf = (id: string): Line | undefined => lines().find(({ request_id }) => request_id === id);
  expect(lineOf('mine.1')).toMatchObject({
    method: 'POST',
    route: '/admin/v1/fleets',
    status: 201,
    level: 30,
    address: '127.0.0.1',
    principal: 'bootstrap',
  });
  for (const { id } of [strange, unknown]) expect(lineOf(id)).toMatchObject({ status: 400 });
  expect(lineOf(read.id)).toMatchObject({
    route: '/admin/v1/fleets/:fleet_id',
    fleet: fleet.fleetId,
    level: 20,
  });
  const { 'X-Device-Secret': secret } = device.credentials as { 'X-Device-Secret'?: string };
  expect(secret).toMatch(/^FOS-/);
  for (const hidden of [marker, secret, wrongSecret, server.token, 'TOKENOFSOMEBODYELSE']) {
    expect(server.stderr).not.toContain(hidden);
  }
});

it('refused requests of unknown clients share a line with their number', async () => {
  const server = await TestServer.start({ logLevel: 'info' });
  const { admin_url } = server.report;
  const refused = 50;
  for (let sent = 0; sent < refused; sent += 1) {
    const headers = { authorization: 'Bearer TOKENOFSOMEBODYELSE' };
    const { status } = await fetch(`${admin_url}/admin/v1/fleets`, { method: 'POST', headers });
    expect(status).toBe(401);
  }
  server.process.kill('SIGTERM');
  await server.ended();
  const lines = server.stderr
    .split('\n')
    .filter((line) => line.includes('admin request'))
    .map((line) => JSON.parse(line) as Line & { requests?: number });
  // One line and one number each time that the first of them begins to count.
  expect(lines.length).toBeLessThan(refused / 2);
  expect(lines.reduce((sum, { requests = 1 }) => sum + requests, 0)).toBe(refused);
});

it('what a library puts into an error reaches the log without secrets, and bounded', async () => {
  const script = `
    const { createLog } = await import(${JSON.stringify(new URL('../../../src/core/telemetry/log.ts', import.meta.url).href)});
    const secret = 'FOS-' + 'aB3'.repeat(10) + 'xy';
    const error = Object.assign(new Error('failed with ' + secret + ' and Authorization: Bearer abc.def'), {
      code: 'E_X', options: { headers: { authorization: 'hidden-header' } },
    });
    createLog('info').error({ err: error, text: secret }, 'Bearer topsecret');
    createLog('info').error({ err: new Error('m'.repeat(100000)) }, 'long');
  `;
  const { execute } = await import('../../harness/server/command.ts');
  const { stderr } = await execute(process.execPath, [
    ...withTypeScript,
    '--input-type=module',
    '-e',
    script,
  ]);
  expect(stderr).toMatch(/"code":"E_X"/);
  expect(stderr).not.toMatch(/xy\b|abc\.def|topsecret|hidden-header/);
  expect(stderr.length).toBeLessThan(20_000);
});

it.each(['SIGTERM', 'SIGINT'] as const)(
  'the log says that %s stops the server, and when it has stopped',
  async (signal) => {
    const server = await TestServer.start({ logLevel: 'info' });
    server.process.kill(signal);
    expect(await server.ended()).toBe(0);
    const lines = server.stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
    expect(lines.slice(-2)).toMatchObject([
      { msg: 'stopping', cause: signal, drainSeconds: 0 },
      { msg: 'stopped' },
    ]);
  },
);
