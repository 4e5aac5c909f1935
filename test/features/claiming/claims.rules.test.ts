import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, fetch } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { generateDeviceSecret } from '../../../src/core/identity.ts';
import { createFleet, TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { expectError } from '../../harness/devices/routes.ts';
import { fleetpostJson } from '../../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { until } from '../../harness/server/vitals.ts';
import { isStored } from '../../harness/storage/stored.ts';

const data = temporaryFolder();
const file = join(temporaryFolder(), 'fleetpost.json');
const start = (): Promise<TestServer> =>
  TestServer.start({ logLevel: 'info', claimsQueueMax: 512 }, data, { flags: ['--config', file] });

let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  writeFileSync(file, '{}');
  server = await start();
  fleet = await createFleet(server);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

interface Answer {
  status: number;
  text: string;
  headers: { get(name: string): string | null };
  json: { fleet_id: string; device_id: string; device_secret: string; error?: string };
}

async function post(
  body: string,
  headers: Record<string, string> = {},
  agent = server.agent,
): Promise<Answer> {
  const answer = await fetch(`${server.url}/v1/claim`, {
    method: 'POST',
    dispatcher: agent,
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  const text = await answer.text();
  return { status: answer.status, text, headers: answer.headers, json: JSON.parse(text) };
}

const claim = (claimToken: string, more: object = {}, agent?: Agent): Promise<Answer> =>
  post(JSON.stringify({ fleet_id: fleet.fleetId, claim_token: claimToken, ...more }), {}, agent);

interface ClaimToken {
  claim_token: string;
  claim_token_id: string;
  devices_claimed: number;
}

async function makeToken(body: object = {}): Promise<ClaimToken> {
  const path = `/fleets/${fleet.fleetId}/claim-tokens`;
  const answer = await server.admin<ClaimToken>('POST', path, { devices_max: 1_000, ...body });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer));
  return answer.body;
}

async function claimedBy({ claim_token_id }: ClaimToken): Promise<number | undefined> {
  const path = `/fleets/${fleet.fleetId}/claim-tokens?limit=1000`;
  const { body } = await server.admin<{ items: ClaimToken[] }>('GET', path);
  return body.items.find((one) => one.claim_token_id === claim_token_id)?.devices_claimed;
}

async function devicesTagged(tag: string): Promise<string[]> {
  const path = `/fleets/${fleet.fleetId}/devices?limit=1000`;
  const { body } = await server.admin<{ items: { device_id: string; tags: string[] }[] }>('GET', path);
  return body.items.filter(({ tags }) => tags.includes(tag)).map(({ device_id }) => device_id);
}

it('claiming is off by default: there is no such route; SIGHUP turns it on', async () => {
  const { claim_token } = await makeToken();
  expectError(await claim(claim_token), 404, 'route_not_found');
  writeFileSync(file, JSON.stringify({ claiming: true }));
  server.process.kill('SIGHUP');
  await until(() => server.stderr.includes('"claiming":true'));
  expect((await claim(claim_token)).status).toBe(201);
  const other = await fetch(`${server.url}/v1/claim`, { dispatcher: server.agent });
  expectError({ status: other.status, text: await other.text() }, 404, 'route_not_found');
});

it('a device that claims is answered credentials that work, and is as the token says', async () => {
  const token = await makeToken({ tags: ['claimed', 'batch 7'] });
  expect(token.claim_token).toMatch(/^FPC-[A-Z0-9]{32}$/);
  const answer = await claim(token.claim_token, { device_id: 'CLAIMED001', name: 'Öl sensor' });
  expect(answer.status).toBe(201);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(answer.json).toEqual({
    fleet_id: fleet.fleetId,
    device_id: 'CLAIMED001',
    device_secret: expect.stringMatching(/^FOS-[A-Z0-9]{32}$/),
  });
  const device = new TestDevice(server, fleet.fleetId, 'CLAIMED001', answer.json.device_secret);
  expect((await device.heartbeat()).status).toBe(201);
  const shown = await server.admin('GET', device.adminPath);
  expect(shown.body).toMatchObject({ name: 'Öl sensor', tags: ['claimed', 'batch 7'], enabled: true });
  const generated = await claim(token.claim_token);
  expect(generated.json.device_id).toMatch(/^[A-Z0-9]{10}$/);
  expect(await claimedBy(token)).toBe(2);

  const audited = await server.admin<{ items: object[] }>('GET', `/audit?token=${token.claim_token_id}`);
  expect(audited.body.items).toEqual([
    expect.objectContaining({
      about: { fleet_id: fleet.fleetId, device_id: generated.json.device_id },
      status: 201,
    }),
    expect.objectContaining({
      by: { kind: 'claim_token', id: token.claim_token_id, name: '' },
      route: '/v1/claim',
      about: { fleet_id: fleet.fleetId, device_id: 'CLAIMED001' },
      address: '127.0.0.1',
    }),
  ]);
  for (const secret of [token.claim_token, answer.json.device_secret]) {
    expect(await isStored(server.report, secret)).toBe(false);
  }
});

it('of 60 devices that claim at once no more are let in than may be', async () => {
  const token = await makeToken({ devices_max: 20, tags: ['twenty'] });
  const answers = await Promise.all(Array.from({ length: 60 }, () => claim(token.claim_token)));
  const let_in = answers.filter(({ status }) => status === 201);
  expect(let_in).toHaveLength(20);
  expect(new Set(let_in.map(({ json }) => json.device_id)).size).toBe(20);
  for (const answer of answers) if (answer.status !== 201) expectError(answer, 403, 'claim_limit_reached');
  expect(await claimedBy(token)).toBe(20);
  expect(await devicesTagged('twenty')).toHaveLength(20);
});

it('of claims of one id at once one is let in, and the others take nothing from devices that come meanwhile', async () => {
  const token = await makeToken({ devices_max: 10, tags: ['crowd'] });
  const crowd = Array.from({ length: 120 }, (_, n) =>
    claim(token.claim_token, {
      device_id: 'CROWD00001',
      ...(n % 2 === 0 && { device_secret: generateDeviceSecret() }),
    }),
  );
  const honest: Answer[] = [];
  for (let n = 0; n < 8; n += 1) honest.push(await claim(token.claim_token, { device_id: `HONEST000${n}` }));
  expect(honest.map(({ status }) => status)).toEqual(Array(8).fill(201));
  const answers = await Promise.all(crowd);
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
  for (const answer of answers) if (answer.status !== 201) expectError(answer, 409, 'already_exists');
  expect(await claimedBy(token)).toBe(9);
  expect(await devicesTagged('crowd')).toHaveLength(9);
});

it('a token is for ids of its pattern, until it expires or is revoked, and for its fleet', async () => {
  const soon = new Date(Date.now() + 2_000).toISOString();
  const brief = await makeToken({ expires_at: soon });
  const token = await makeToken({ id_pattern: 'PUMP[0-9]{6}|VALVE[0-9]+' });
  for (const device_id of ['PUMP000001', 'VALVE00001']) {
    expect((await claim(token.claim_token, { device_id })).status).toBe(201);
  }
  for (const device_id of ['XPUMP00001', 'PUMP00000A', 'PUMPVALVE1']) {
    expectError(await claim(token.claim_token, { device_id }), 403, 'claim_id_refused');
  }
  expectError(await claim(token.claim_token), 400, 'invalid_body');
  for (const id_pattern of ['(a', 'a)|(b', '(?=a)', '\\1', 'a{1000}{1000}', '(([A-Z]{50}){10}){2}', '']) {
    const path = `/fleets/${fleet.fleetId}/claim-tokens`;
    const refused = await server.admin('POST', path, { devices_max: 1, id_pattern });
    expect(refused, id_pattern).toMatchObject({ status: 400, body: { error: 'invalid_body' } });
  }

  await until(() => Date.now() > Date.parse(soon));
  expectError(await claim(brief.claim_token), 403, 'claim_expired');
  const other = await createFleet(server);
  const elsewhere = { fleet_id: other.fleetId };
  expectError(await claim(token.claim_token, { ...elsewhere, device_id: 'PUMP000002' }), 401, 'unauthorized');
  const at = `/fleets/${other.fleetId}/claim-tokens/${token.claim_token_id}`;
  expect((await server.admin('DELETE', at)).body).toMatchObject({ error: 'claim_token_not_found' });
  expect((await server.admin('DELETE', at.replace(other.fleetId, fleet.fleetId))).status).toBe(204);
  expectError(await claim(token.claim_token, { device_id: 'PUMP000002' }), 401, 'unauthorized');
});

it('an id that is taken is refused, and tells no more; a device that names its secret can ask again', async () => {
  const token = await makeToken({ devices_max: 3 });
  const { deviceId, secret } = await fleet.createDevice();
  expectError(await claim(token.claim_token, { device_id: deviceId }), 409, 'already_exists');
  const device_secret = generateDeviceSecret();
  expectError(await claim(token.claim_token, { device_id: deviceId, device_secret }), 409, 'already_exists');
  expect(await claimedBy(token)).toBe(0);

  const own = { device_id: 'OWNSECRET1', device_secret };
  const twins = await Promise.all(Array.from({ length: 8 }, () => claim(token.claim_token, own)));
  for (const { status, json } of twins) {
    expect({ status, json }).toEqual({ status: 201, json: { fleet_id: fleet.fleetId, ...own } });
  }
  expect(await claimedBy(token)).toBe(1);
  await Promise.all([claim(token.claim_token), claim(token.claim_token)]);
  // Used up, it tells nothing of ids, and still answers the device that had its answer lost.
  expectError(await claim(token.claim_token, { device_id: deviceId }), 403, 'claim_limit_reached');
  expect((await claim(token.claim_token, own)).status).toBe(201);
  expect((await new TestDevice(server, fleet.fleetId, deviceId, secret).heartbeat()).status).toBe(201);
});

it('D7, D9, D10: what is malformed is refused as everywhere', async () => {
  const { claim_token } = await makeToken();
  const good = { fleet_id: fleet.fleetId, claim_token };
  for (const body of [
    {},
    { fleet_id: fleet.fleetId },
    { ...good, fleet_id: 'short' },
    { ...good, claim_token: 7 },
    { ...good, claim_token: 'a b' },
    { ...good, device_id: 'tooshort' },
    { ...good, device_id: null },
    { ...good, device_secret: 'FOS-weak' },
    { ...good, name: 'x'.repeat(256) },
    { ...good, name: 'two\nlines' },
    { ...good, name: 'turned \u202eround' },
    { ...good, name: 'half \ud800' },
    { ...good, more: 1 },
    { ...good, constructor: 'x' },
    [],
  ]) {
    expectError(await post(JSON.stringify(body)), 400, 'invalid_body');
  }
  expectError(await post('{"fleet_id":'), 400, 'invalid_json');
  expectError(await post('{"__proto__":{},"fleet_id":"x"}'), 400, 'invalid_body');
  expectError(
    await post(JSON.stringify(good), { 'content-type': 'text/plain' }),
    415,
    'unsupported_media_type',
  );
  expectError(await post(`"${'x'.repeat(70_000)}"`), 413, 'request_too_large');
});

it('D6: who guesses is refused by address, whoever has a good token there or elsewhere is not', async () => {
  const token = await makeToken();
  const from = (localAddress: string) => new Agent({ connect: { ca: server.ca }, localAddress });
  const agent = from('127.0.0.9');
  const wrong = (digit: number) => claim(`FPC-${String(digit).repeat(32)}`, {}, agent);
  for (let i = 0; i < 10; i += 1) expectError(await wrong(i), 401, 'unauthorized');
  const answer = await wrong(1);
  expectError(answer, 429, 'rate_limited');
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(answer.text).toContain('unauthorizedMax');
  expect((await claim(token.claim_token, {}, agent)).status).toBe(201);
  expect((await claim(token.claim_token)).status).toBe(201);
  expectError(await claim(`FPC-${'1'.repeat(32)}`), 401, 'unauthorized');
  await agent.destroy();
});

it('across kill -9: no device too many, and each that was answered is there', async () => {
  const token = await makeToken({ devices_max: 200, tags: ['killed'] });
  const answered: Answer['json'][] = [];
  const work = async (): Promise<void> => {
    for (;;) {
      const { status, json } = await claim(token.claim_token);
      if (status !== 201) return;
      answered.push(json);
    }
  };
  const workers = Array.from({ length: 16 }, () => work().catch(() => {}));
  await until(() => answered.length > 40);
  await server.kill();
  await Promise.all(workers);
  server = await start();
  fleet.server = server;
  const counted = (await claimedBy(token)) ?? 0;
  const there = await devicesTagged('killed');
  expect(there).toEqual(expect.arrayContaining(answered.map(({ device_id }) => device_id)));
  expect(there.length).toBeLessThanOrEqual(counted);
  expect(counted).toBeLessThanOrEqual(200);
  const { device_id, device_secret } = answered.at(-1) as Answer['json'];
  expect((await new TestDevice(server, fleet.fleetId, device_id, device_secret).heartbeat()).status).toBe(
    201,
  );
  // The rest of the count is left, and no more.
  const rest = await Promise.all(Array.from({ length: 200 }, () => claim(token.claim_token)));
  expect(rest.filter(({ status }) => status === 201)).toHaveLength(200 - counted);
  expect(await devicesTagged('killed')).toHaveLength(there.length + 200 - counted);
});

it('claim tokens are made, listed and revoked by commands', async () => {
  const run = (...args: string[]) =>
    fleetpostJson(server, ['claim-token', ...args, '--fleet', fleet.fleetId]);
  const made = await run(
    'create',
    '--devices',
    '5',
    '--name',
    'Batch',
    '--expires',
    '7d',
    '--id-pattern',
    'LAMP.*',
  );
  expect((await claim(made.claim_token, { device_id: 'LAMP000001' })).status).toBe(201);
  const listed = await run('list', '--limit', '1000');
  expect(listed.items).toContainEqual(
    expect.objectContaining({ name: 'Batch', devices_claimed: 1, devices_max: 5, id_pattern: 'LAMP.*' }),
  );
  expect(JSON.stringify(listed)).not.toContain(made.claim_token);
  await run('revoke', made.claim_token_id);
  expectError(await claim(made.claim_token, { device_id: 'LAMP000002' }), 401, 'unauthorized');
});

it('the claim tokens of a fleet that is being deleted admit nobody', async () => {
  const gone = await createFleet(server);
  const path = `/fleets/${gone.fleetId}`;
  const { body } = await server.admin<ClaimToken>('POST', `${path}/claim-tokens`, { devices_max: 9 });
  const claimed = { fleet_id: gone.fleetId, claim_token: body.claim_token };
  expect((await post(JSON.stringify(claimed))).status).toBe(201);
  expect((await server.admin('DELETE', `${path}?name=${gone.fleetId}`)).status).toBe(202);
  expect((await post(JSON.stringify(claimed))).status).toBe(401);
});
