import type { Agent } from 'undici';
import { beforeAll, expect, it } from 'vitest';
import { createFleet } from '../../harness/devices/device.ts';
import { fleetpost } from '../../harness/server/command.ts';
import { TestServer } from '../../harness/server/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.shared();
});

interface Listed {
  items: Record<string, unknown>[];
}

it('what a device is refused is listed with its reason, and counted when it comes again', async () => {
  const fleet = await createFleet(server);
  await fleet.putSchema('datapoint', 'climate', {
    type: 'object',
    properties: { celsius: { type: 'number' } },
    required: ['celsius'],
  });
  const device = await fleet.createDevice({ name: 'pump' });
  const refusals = async () => (await server.admin<Listed>('GET', `${device.adminPath}/refusals`)).body.items;
  expect(await refusals()).toEqual([]);

  const send = (celsius: unknown) => device.request('POST', '/v1/datapoint/climate', { celsius });
  expect((await send('warm')).status).toBe(400);
  expect((await send('hot')).status).toBe(400);
  expect((await send(21)).status).toBe(201);
  const wrong = { 'X-Device-Secret': `FOS-${'0'.repeat(32)}` };
  expect((await device.request('POST', '/v1/heartbeat', undefined, wrong)).status).toBe(401);
  await server.admin('PATCH', device.adminPath, { enabled: false });
  expect((await device.heartbeat()).status).toBe(401);
  await server.admin('PATCH', device.adminPath, { enabled: true });
  for (const expected of [201, 409]) {
    const path = `${device.adminPath}/mail/hello?mailbox_mails_max=1`;
    expect((await server.admin('POST', path, {})).status).toBe(expected);
  }
  const found = await refusals();
  const none = {
    name: null,
    detail: null,
    path: null,
    path_msg: null,
    value: null,
    count: 1,
    accepted_at: null,
    last_address: '127.0.0.1',
  };
  const always = { msg: expect.any(String), first_at: expect.any(String), last_at: expect.any(String) };
  expect(found).toEqual([
    {
      ...none,
      ...always,
      route: 'POST /fleets/:fleet_id/devices/:device_id/mail/:name',
      name: 'hello',
      last_address: null,
      error: 'mailbox_full',
    },
    { ...none, ...always, route: 'POST /v1/heartbeat', error: 'unauthorized', detail: 'device_disabled' },
    {
      ...none,
      ...always,
      route: 'POST /v1/heartbeat',
      error: 'unauthorized',
      detail: 'device_secret_incorrect',
    },
    {
      ...none,
      ...always,
      route: 'POST /v1/datapoint/:schema_name',
      name: 'climate',
      error: 'schema_mismatch',
      path: '/celsius',
      path_msg: expect.stringContaining('number'),
      value: expect.any(String),
      count: 2,
      accepted_at: expect.any(String),
    },
  ]);
  expect(JSON.stringify(found)).not.toContain('FOS-');
});

it('a refusal is the diagnosis until a request of its kind is accepted, on whatever thread, and again with the next', async () => {
  const fleet = await createFleet(server);
  for (const name of ['climate', 'energy']) {
    await fleet.putSchema('datapoint', name, { type: 'object', properties: { value: { type: 'number' } } });
  }
  const device = await fleet.createDevice();
  const send = (name: string, value: unknown, agent?: Agent) =>
    device.request('POST', `/v1/datapoint/${name}`, { value }, {}, agent);
  const kind = async () =>
    (await server.admin<{ kind: string }>('GET', `${device.adminPath}/diagnosis`)).body.kind;
  expect((await send('climate', 'warm')).status).toBe(400);
  expect(await kind()).toBe('schema_mismatch');
  // Another kind says nothing of it.
  expect((await send('energy', 1)).status).toBe(201);
  expect(await kind()).toBe('schema_mismatch');
  // A connection of its own is dealt to another thread.
  const other = TestServer.agentFor(server.ca);
  expect((await send('climate', 21, other)).status).toBe(201);
  await other.destroy();
  await expect.poll(kind).toBe('ok');
  expect((await send('climate', 'cold')).status).toBe(400);
  expect(await kind()).toBe('schema_mismatch');
});

it('a device over its rate is told of by the share that is refused, though its last request was accepted', async () => {
  const fleet = await createFleet(server, { device_requests_per_second_max: 1 });
  const device = await fleet.createDevice();
  const heartbeat = async () => (await device.request('POST', '/v1/heartbeat')).status;
  const statuses: number[] = [];
  for (let sent = 0; sent < 20; sent += 1) statuses.push(await heartbeat());
  while (statuses.at(-1) === 429) statuses.push(await heartbeat());
  const limited = statuses.filter((status) => status === 429).length;
  // Nothing is counted before the first refusal.
  const percent = Math.floor((100 * limited) / (statuses.length - statuses.indexOf(429)));
  const { body } = await server.admin<{ sentence: string }>('GET', `${device.adminPath}/diagnosis`);
  expect(body).toMatchObject({ kind: 'rate_limited' });
  expect(body.sentence).toContain(`Calls too often: ${percent} % of its requests in the last minutes`);
  await expect.poll(() => server.stderr).toContain('device over its rate; requests refused');
});

it('nothing is noted of a device that does not exist', async () => {
  const fleet = await createFleet(server);
  const device = await fleet.createDevice();
  await server.admin('DELETE', device.adminPath);
  expect((await device.heartbeat()).status).toBe(401);
  expect((await server.admin('GET', `${device.adminPath}/refusals`)).body).toMatchObject({
    error: 'device_not_found',
  });
});

it('why a device is stuck is said in a sentence, by the API and by the command', async () => {
  const fleet = await createFleet(server);
  const device = await fleet.createDevice();
  const diagnosis = async () => {
    const { body } = await server.admin<Record<string, unknown>>('GET', `${device.adminPath}/diagnosis`);
    return `${body.kind}: ${body.sentence}`;
  };
  expect(await diagnosis()).toMatch(/^never_seen: Has never called\. It was created /);
  await server.admin('POST', `${device.adminPath}/mail/hello`, {});
  await device.heartbeat();
  await expect.poll(diagnosis).toMatch(/^ok: Last called .*; 1 mail waits\.$/);
  const wrong = { 'X-Device-Secret': `FOS-${'0'.repeat(32)}` };
  await device.request('POST', '/v1/heartbeat', undefined, wrong);
  expect(await diagnosis()).toMatch(
    /^wrong_secret: Calls, and is refused: wrong secret, last tried .* from 127\.0\.0\.1\.$/,
  );
  await server.admin('PATCH', device.adminPath, { enabled: false });
  const shown = await fleetpost([
    'device',
    'show',
    device.deviceId,
    '--fleet',
    fleet.fleetId,
    '--data',
    server.report.data,
  ]);
  expect(shown.stdout).toMatch(/^diagnosis +Is disabled: every call is refused until it is enabled\.$/m);
  expect((await server.admin('GET', `/fleets/${fleet.fleetId}/devices/NOWHERE001/diagnosis`)).status).toBe(
    404,
  );
});
