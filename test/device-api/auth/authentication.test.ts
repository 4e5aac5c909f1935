import { uuidv7 } from 'uuidv7';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, oneConnection, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { ask, expectError, type Route, routes, valuesOf } from '../../harness/devices/routes.ts';
import { TestServer } from '../../harness/server/server.ts';

let server: TestServer;
let fleet: TestFleet;
let device: TestDevice;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
  device = await fleet.createDevice();
});
const version: Route = { method: 'GET', path: '/v1' };
const labelOf = ({ method, path }: Route): string =>
  `${method} ${path.replace(/[-0-9a-f]{36}$/, ':mail_id')}`;
const credentialHeaders = ['X-Fleet-ID', 'X-Device-ID', 'X-Device-Secret'] as const;
const good = { fleet: 'ABCD1234', device: 'ABCDE12345', secret: `FOS-${'a1'.repeat(16)}` };

function headersOf({ fleet, device, secret }: typeof good): Record<string, string> {
  return { 'X-Fleet-ID': fleet, 'X-Device-ID': device, 'X-Device-Secret': secret };
}

describe('D4: malformed credentials are 400 and detail says which', () => {
  it.each(credentialHeaders)('D4: %s missing or empty is invalid_credentials', async (name) => {
    const { [name]: _, ...rest } = device.credentials;
    const detail = 'invalid_credentials';
    expectError(await ask(server, version, rest), 400, 'malformed_credentials', { detail });
    expectError(await ask(server, version, { ...rest, [name]: '' }), 400, 'malformed_credentials', {
      detail,
    });
  });

  it.each([
    ['X-Fleet-ID', 'ABCD123', 'invalid_fleet_id'],
    ['X-Fleet-ID', 'ABCD12345', 'invalid_fleet_id'],
    ['X-Fleet-ID', 'ABCD-234', 'invalid_fleet_id'],
    ['X-Device-ID', 'ABCDE1234', 'invalid_device_id'],
    ['X-Device-ID', 'ABCDE123456', 'invalid_device_id'],
    ['X-Device-ID', 'ABCDE_2345', 'invalid_device_id'],
    ['X-Device-Secret', `FOS-${'a'.repeat(31)}`, 'invalid_device_secret'],
    ['X-Device-Secret', `FOS-${'a'.repeat(33)}`, 'invalid_device_secret'],
    ['X-Device-Secret', `FOS-${'a'.repeat(31)}_`, 'invalid_device_secret'],
    ['X-Device-Secret', `fos-${'a'.repeat(32)}`, 'invalid_device_secret'],
    ['X-Device-Secret', `FOX-${'a'.repeat(32)}`, 'invalid_device_secret'],
    ['X-Device-Secret', `FOS_${'a'.repeat(32)}`, 'invalid_device_secret'],
    ['X-Device-Secret', 'a'.repeat(36), 'invalid_device_secret'],
  ])('D4: %s "%s" is %s', async (name, value, detail) => {
    const answer = await ask(server, version, { ...device.credentials, [name]: value });
    expectError(answer, 400, 'malformed_credentials', { detail });
  });

  it.each([
    ['an empty header', { ...good, fleet: '!', device: '!', secret: '' }, 'invalid_credentials'],
    ['the fleet id', { fleet: '!', device: '!', secret: '!' }, 'invalid_fleet_id'],
    ['the device id', { ...good, device: '!', secret: '!' }, 'invalid_device_id'],
    ['the secret, before the fleet is looked for', { ...good, secret: '!' }, 'invalid_device_secret'],
  ])('D4: of several faults the first is told: %s', async (_, credentials, detail) => {
    const answer = await ask(server, version, headersOf(credentials));
    expectError(answer, 400, 'malformed_credentials', { detail });
  });
});

describe('D4: well-formed credentials that fail are 401, section 7', () => {
  const refusal = (detail: string): [number, string, object] => [401, 'unauthorized', { detail }];

  it('D4: fleet_not_found before device_not_found before device_secret_incorrect', async () => {
    const { 'X-Fleet-ID': fleetId, 'X-Device-ID': deviceId } = device.credentials;
    const { secret } = good;
    expectError(await ask(server, version, headersOf(good)), ...refusal('fleet_not_found'));
    const noDevice = headersOf({ ...good, fleet: fleetId });
    expectError(await ask(server, version, noDevice), ...refusal('device_not_found'));
    const wrongSecret = headersOf({ fleet: fleetId, device: deviceId, secret });
    expectError(await ask(server, version, wrongSecret), ...refusal('device_secret_incorrect'));
  });

  it('D4: a device of another fleet is device_not_found', async () => {
    const other = await createFleet(server);
    const answer = await device.request('GET', '/v1', undefined, { 'X-Fleet-ID': other.fleetId });
    expectError(answer, ...refusal('device_not_found'));
  });

  it('D4: device_disabled is told to who has the secret; enabled again, the device is let in', async () => {
    const disabled = await fleet.createDevice();
    await server.admin('PATCH', disabled.adminPath, { enabled: false });
    expectError(await disabled.heartbeat(), ...refusal('device_disabled'));
    const wrong = await disabled.request('GET', '/v1', undefined, { 'X-Device-Secret': good.secret });
    expectError(wrong, ...refusal('device_secret_incorrect'));
    await server.admin('PATCH', disabled.adminPath, { enabled: true });
    expect((await disabled.heartbeat()).status).toBe(201);
  });

  it.each([
    ['disabled', 'device_disabled', 'PATCH', '', { enabled: false }],
    ['deleted', 'device_not_found', 'DELETE', '', undefined],
    ['re-keyed', 'device_secret_incorrect', 'POST', '/rotate-secret', undefined],
  ])(
    'D4: a device that is %s is refused on its next request, on every worker',
    async (_, detail, method, path, body) => {
      const changed = await fleet.createDevice();
      const agents = [1, 2, 3].map(() => oneConnection(server));
      const ask = () =>
        Promise.all(agents.map((agent) => changed.request('POST', '/v1/heartbeat', undefined, {}, agent)));
      for (let time = 0; time < 2; time += 1) {
        expect((await ask()).map(({ status }) => status)).toEqual([201, 201, 201]);
      }
      await server.admin(method, `${changed.adminPath}${path}`, body);
      for (const answer of await ask()) expectError(answer, ...refusal(detail));
      await Promise.all(agents.map((agent) => agent.destroy()));
    },
  );

  it('D4: a device that is deleted and made again has a new secret and an empty mailbox', async () => {
    const device_id = 'REBORN0001';
    const before = await fleet.createDevice({ device_id });
    await before.sendMail();
    expect((await before.next()).status).toBe(200);
    await server.admin('DELETE', before.adminPath);
    const after = await fleet.createDevice({ device_id });
    expect((await after.next()).status).toBe(204);
    expectError(await before.next(), ...refusal('device_secret_incorrect'));
  });
});

describe('section 5.2: every route but GET / needs credentials', () => {
  it.each(routes.map((route) => [labelOf(route), route] as const))('section 5.2: %s', async (_, route) => {
    const fresh = await fleet.createDevice();
    const missing = await ask(server, route);
    const wrong = await ask(server, route, { ...fresh.credentials, 'X-Device-Secret': good.secret });
    expect([missing.status, wrong.status]).toEqual([400, 401]);
    if (route.method === 'HEAD') return;
    expectError(missing, 400, 'malformed_credentials', { detail: 'invalid_credentials' });
    expectError(wrong, 401, 'unauthorized', { detail: 'device_secret_incorrect' });
  });

  it('section 5.2: GET / takes any credentials, or none', async () => {
    expect((await ask(server, { method: 'GET', path: '/' })).status).toBe(200);
    expect((await ask(server, { method: 'GET', path: '/' }, headersOf(good))).status).toBe(200);
  });

  it('section 5.3: header names may have any case', async () => {
    const inCase = (change: (name: string) => string): Record<string, string> =>
      Object.fromEntries(Object.entries(device.credentials).map(([name, value]) => [change(name), value]));
    for (const change of [(name: string) => name.toUpperCase(), (name: string) => name.toLowerCase()]) {
      expect((await ask(server, version, inCase(change))).status).toBe(200);
    }
  });
});

describe('D5: the fleet in the host name', () => {
  let hosted: TestServer;
  let one: TestDevice;
  beforeAll(async () => {
    hosted = await TestServer.start({ hostSuffix: 'device.example.com' });
    one = await (await createFleet(hosted, { fleet_id: 'FleetOne' })).createDevice();
    await createFleet(hosted, { fleet_id: 'FleetTwo' });
  });
  afterAll(() => hosted[Symbol.asyncDispose]());

  it.each([
    'FleetOne.device.example.com',
    'fleetone.device.example.com',
    'FLEETONE.DEVICE.EXAMPLE.COM',
    'fleetone.device.example.com:8443',
    'device.example.com',
    'fleettwo.example.com',
    'fleettwo.device.example.com.evil.org',
    'fleettwodevice.example.com',
    'localhost',
    '127.0.0.1:8443',
  ])('D5: Host %s suits fleet FleetOne', async (Host) => {
    expect((await ask(hosted, version, { ...one.credentials, Host })).status).toBe(200);
  });

  it.each([
    'FleetTwo.device.example.com',
    'fleettwo.device.example.com:8443',
    'nofleet0.Device.Example.com',
    'x.fleetone.device.example.com',
  ])('D5, section 5.4: Host %s names another fleet: 400 fleet_host_mismatch', async (Host) => {
    for (const route of [version, { method: 'POST', path: '/v1/heartbeat' }]) {
      expectError(await ask(hosted, route, { ...one.credentials, Host }), 400, 'fleet_host_mismatch');
    }
  });

  it('D5: the host name is held against X-Fleet-ID before the fleet is looked for', async () => {
    const Host = 'fleetone.device.example.com';
    expectError(await ask(hosted, version, { ...headersOf(good), Host }), 400, 'fleet_host_mismatch');
  });

  it('D5: without hostSuffix the host name is not looked at', async () => {
    const Host = 'fleettwo.device.example.com';
    expect((await ask(server, version, { ...device.credentials, Host })).status).toBe(200);
  });
});

describe('order of checks', () => {
  const json = { 'Content-Type': 'application/json' };
  const text = { 'Content-Type': 'text/plain' };
  const tooLong = 'x'.repeat(65_537);
  const badKey = { 'Idempotency-Key': 'nonsense' };
  const wrongSecret = (): Record<string, string> => ({
    ...device.credentials,
    'X-Device-Secret': good.secret,
  });

  it.each([
    ['GET', '/v1/nothing'],
    ['GET', '/v2'],
    ['GET', '/v1/datapoint/reading'],
    ['PUT', '/v1/heartbeat'],
    ['POST', '/v1/mailbox/next'],
    ['DELETE', '/v1/mailbox/size'],
    ['POST', '/'],
    ['POST', '/v1/datapoint/reading/more'],
  ])(
    'order of checks: %s %s is no route, whatever else is wrong: 404 route_not_found',
    async (method, path) => {
      expectError(await ask(server, { method, path }), 404, 'route_not_found');
      expectError(await ask(server, { method, path }, wrongSecret()), 404, 'route_not_found');
      expectError(await ask(server, { method, path }, { ...device.credentials }), 404, 'route_not_found');
    },
  );

  it.each(['/v1/datapoint/reading', '/v1/datapoint/nothing', '/v1/msg/nothing'])(
    'order of checks: credentials before the rest on %s',
    async (path) => {
      const route = { method: 'POST', path, body: tooLong };
      const missing = await ask(server, route, { ...text, ...badKey });
      expectError(missing, 400, 'malformed_credentials', { detail: 'invalid_credentials' });
      const wrong = await ask(server, route, { ...wrongSecret(), ...text, ...badKey });
      expectError(wrong, 401, 'unauthorized', { detail: 'device_secret_incorrect' });
    },
  );

  it('order of checks: 415 before 413', async () => {
    const route = { method: 'POST', path: '/v1/datapoint/nothing', body: tooLong };
    const answer = await ask(server, route, { ...device.credentials, ...text });
    expectError(answer, 415, 'unsupported_media_type');
  });

  it('order of checks: 415 before 413 for a chunked body too', async () => {
    const route = { method: 'POST', path: '/v1/datapoint/reading', body: tooLong, chunked: true };
    const answer = await ask(server, route, { ...device.credentials, ...text });
    expectError(answer, 415, 'unsupported_media_type');
  });

  it('order of checks: 413 before the body is looked at', async () => {
    const route = { method: 'POST', path: '/v1/datapoint/nothing', body: tooLong };
    const answer = await ask(server, route, { ...device.credentials, ...json });
    expectError(answer, 413, 'request_too_large');
  });

  it.each([
    ['{', 'invalid_json'],
    ['[]', 'invalid_body'],
  ])('order of checks: the body %s before its schema: %s', async (body, code) => {
    for (const path of ['/v1/datapoint/nothing', '/v1/msg/nothing']) {
      expectError(await device.request('POST', path, body, badKey), 400, code);
    }
  });

  it('order of checks: the schema before the idempotency key', async () => {
    await fleet.putSchema('datapoint', 'strict', { required: ['a'] });
    const unknown = await device.request('POST', '/v1/datapoint/nothing', { b: 1 }, badKey);
    expectError(unknown, 404, 'schema_not_found');
    const mismatch = await device.request('POST', '/v1/datapoint/strict', { b: 1 }, badKey);
    expect(mismatch.json.error).toBe('schema_mismatch');
    const key = await device.request('POST', '/v1/datapoint/strict', { a: 1 }, badKey);
    expectError(key, 400, 'invalid_idempotency_key');
  });

  it('order of checks: who has not authenticated is told nothing of fleets, schemas or mail', async () => {
    const waiting = await device.sendMail();
    const twins = [
      ['POST', '/v1/datapoint/reading', '/v1/datapoint/nothing'],
      ['POST', '/v1/msg/note', '/v1/msg/nothing'],
      ['PUT', `/v1/mailbox/ack/${waiting.mailId}`, `/v1/mailbox/ack/${uuidv7()}`],
      ['PUT', `/v1/mailbox/ack/${waiting.mailId}`, '/v1/mailbox/ack/nonsense'],
    ] as const;
    for (const [method, there, notThere] of twins) {
      const known = await ask(server, { method, path: there }, wrongSecret());
      const unknown = await ask(server, { method, path: notThere }, wrongSecret());
      expect([known.status, known.body]).toEqual([unknown.status, unknown.body]);
      expect(valuesOf(known, 'x-mailbox-size')).toEqual([]);
    }
    expect((await device.next()).status).toBe(200);
  });
});
