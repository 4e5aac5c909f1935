import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AuditEntryDocument } from '../../../src/contract/access/audit.ts';
import { createFleet } from '../../harness/devices/device.ts';
import { auditEntries } from '../../harness/features/audit.ts';
import { fleetpost, fleetpostJson } from '../../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { until } from '../../harness/server/vitals.ts';
import { auditText } from '../../harness/storage/stored.ts';

const refusalsMax = 20;
let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start({ auditRefusalsPerMinuteMax: refusalsMax, logLevel: 'debug' });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

const entries = (query = ''): Promise<AuditEntryDocument[]> => auditEntries(server, query);

async function exported(token = server.token, query = ''): Promise<string> {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${server.report.admin_url}/admin/v1/audit:export${query}`, { headers });
  return answer.text();
}

/** Requests in short, oldest first. */
const short = (list: readonly AuditEntryDocument[]): string[] =>
  [...list]
    .reverse()
    .map(
      ({ method, route, status }) => `${method} ${route.replace('/admin/v1/fleets/:fleet_id', '')} ${status}`,
    );

/** All that must be nowhere in the audit log or in the log. */
const secrets: string[] = [];

it('every kind of change has an entry with who, what, when, from where and how it ended; reads have none', async () => {
  const startedAt = Date.now();
  const made = await server.admin<{ token: string; token_id: string }>('POST', '/tokens', {
    name: 'Auditor\u2019s "friend"',
    scopes: ['admin'],
  });
  const { token, token_id } = made.body;
  secrets.push(token, server.token);
  const ask = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
    const answer = await fetch(`${server.report.admin_url}/admin/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'x-forwarded-for': '203.0.113.7',
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : { text };
  };
  const fleetId = (await ask('POST', '/fleets', {})).fleet_id as string;
  const fleet = `/fleets/${fleetId}`;
  await ask('PATCH', fleet, { name: 'Renamed in the body' });
  const device = await ask('POST', `${fleet}/devices`, { name: 'Hidden in the body' });
  const at = `${fleet}/devices/${device.device_id}`;
  await ask('PATCH', at, { enabled: false });
  const rotated = await ask('POST', `${at}/rotate-secret`, {});
  await ask('PUT', `${fleet}/schemas/datapoint/flow`, { type: 'object', title: 'Hidden in the schema' });
  const mail = await ask('POST', `${at}/mail/go`, { hidden: 'in the payload' });
  const imported = await ask('POST', `${fleet}/devices:import`, { count: 1_500 });
  const source = 'export default () => "hidden in the source"';
  await ask('PUT', `${fleet}/actions/act`, {
    source,
    language: 'javascript',
    on: [{ kind: 'datapoint', schema: 'flow' }],
  });
  await ask('DELETE', `${fleet}/actions/act`);
  await ask('DELETE', `${fleet}/schemas/datapoint/flow`);
  await ask('DELETE', at);
  await ask('DELETE', at);
  // None of these: looks, and what is not well-formed.
  await ask('GET', `${fleet}/devices`);
  await ask('POST', `${fleet}/devices`, { unknown: true });
  await ask('DELETE', '/nowhere');
  secrets.push(device.device_secret as string, rotated.device_secret as string);
  secrets.push('in the body', 'in the schema', 'in the payload', 'in the source');
  secrets.push(
    ...(imported.text as string)
      .split('\n')
      .slice(1, 1_501)
      .map((line) => line.split(',')[2] ?? ''),
  );
  expect(secrets).toHaveLength(1_508);

  // The import has its status once its connection has seen the end.
  await until(async () => (await entries(`&token=${token_id}`)).every(({ status }) => status !== null));
  const found = await entries(`&fleet=${fleetId}`);
  expect(short(found)).toEqual([
    'POST /admin/v1/fleets 201',
    'PATCH  200',
    'POST /devices 201',
    'PATCH /devices/:device_id 200',
    'POST /devices/:device_id/rotate-secret 200',
    'PUT /schemas/:kind/:name 201',
    'POST /devices/:device_id/mail/:name 201',
    'POST /devices:import 200',
    'PUT /actions/:name 201',
    'DELETE /actions/:name 204',
    'DELETE /schemas/:kind/:name 204',
    'DELETE /devices/:device_id 204',
    'DELETE /devices/:device_id 404',
  ]);
  for (const { by, address, forwarded_for, time } of found) {
    expect(by).toEqual({ kind: 'token', id: token_id, name: 'Auditor\u2019s "friend"' });
    expect([address, forwarded_for]).toEqual(['127.0.0.1', '203.0.113.7']);
    expect(Date.parse(time)).toBeGreaterThanOrEqual(startedAt);
    expect(Date.parse(time)).toBeLessThanOrEqual(Date.now());
  }
  expect(found[0]).toMatchObject({ error: 'device_not_found', about: { device_id: device.device_id } });
  const of = (what: string) => found.find(({ route, method }) => `${method} ${route}`.endsWith(what))?.about;
  expect(of('POST /admin/v1/fleets/:fleet_id/devices')).toMatchObject({ device_id: device.device_id });
  expect(of('mail/:name')).toMatchObject({ name: 'go', mail_id: mail.mail_id });
  expect(of('import')).toEqual({ fleet_id: fleetId, devices: 1_500 });
  expect(found.map(({ entry }) => entry)).toEqual(found.map(({ entry }) => entry).sort((a, b) => b - a));

  const others = await entries('&token=bootstrap');
  expect(others[0]).toMatchObject({ by: { kind: 'bootstrap', id: null }, about: { token_id } });
  expect(await entries(`&token=${token_id}&to=${new Date(startedAt).toISOString()}`)).toEqual([]);
  expect(await entries(`&token=${token_id}&from=${new Date(startedAt).toISOString()}`)).toHaveLength(13);
  expect((await server.admin('GET', '/audit?from=yesterday')).status).toBe(400);
});

it('a start and a configuration that was read again have an entry', async () => {
  server.process.kill('SIGHUP');
  await until(async () => (await entries()).some(({ method }) => method === 'SIGHUP'));
  expect(short(await entries()).slice(0, 1)).toEqual(['START server 200']);
});

it('pages and the export have the same entries, and a token of one fleet sees those of its fleet', async () => {
  const all = await entries();
  const paged = await fleetpostJson(server, ['audit', 'list', '--limit', '10']);
  expect(paged.items).toEqual(all.slice(0, 10));
  const rest = await fleetpostJson(server, ['audit', 'list', '--limit', '1000', '--after', paged.next]);
  expect(rest.items).toEqual(all.slice(10));
  const lines = (await exported()).trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line))).toEqual([...all].reverse());
  const fleet_id = String(all.find(({ method }) => method === 'PATCH')?.about.fleet_id);
  const made = await server.admin<{ token: string }>('POST', '/tokens', {
    name: 'own',
    scopes: ['admin'],
    fleet_id,
  });
  const own = (await exported(made.body.token)).trimEnd().split('\n');
  expect(own).toHaveLength(13);
  expect(JSON.parse(await exported(made.body.token, '?fleet=OTHER001'))).toMatchObject({
    error: 'forbidden',
  });
  const out = join(temporaryFolder(), 'audit.ndjson');
  const command = ['audit', 'export', '--fleet', fleet_id, '--since', '1h', '--out', out];
  await fleetpostJson(server, command);
  expect(readFileSync(out, 'utf8').trimEnd().split('\n')).toEqual(own);
  const list = ['audit', 'list', '--limit', '3', '--data', server.report.data];
  const people = await fleetpost([...list, '--since', '1h']);
  expect(people.stdout).toMatch(/time +by +what +about +status +refusal/);
  // Only a terminal has a width to cut for.
  const whole = await fleetpost(['audit', 'list', '--limit', '1000', '--data', server.report.data]);
  expect(whole.stdout).toContain('device_id=');
  expect(whole.stdout).not.toContain('…');
  const [, after = '', from = ''] = /--after (\S+) --since (\S+)/.exec(people.stdout) ?? [];
  expect((await fleetpost([...list, '--after', after, '--since', from])).stdout).toContain('refusal');
  expect((await fleetpost([...list, '--after', after, '--since', '1h'])).stderr).toContain(
    'not a `next` of this',
  );
});

it('refused requests have entries, as many a minute as is allowed, and push out nothing', async () => {
  const before = (await entries()).filter(({ book }) => book !== 'refused');
  const { token } = (
    await server.admin<{ token: string }>('POST', '/tokens', { name: 'r', scopes: ['read'] })
  ).body;
  const wrong = `FPT-WRONG${'0'.repeat(27)}`;
  secrets.push(token, wrong);
  const flood = async (bearer: string): Promise<void> => {
    await fetch(`${server.report.admin_url}/admin/v1/fleets/NOWHERE1`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${bearer}` },
    });
  };
  await flood(token);
  for (let i = 0; i < 100; i += 1) await flood(wrong);
  const after = await entries();
  expect(after.filter(({ book }) => book !== 'refused')).toEqual(expect.arrayContaining(before));
  const refused = after.filter(({ book }) => book === 'refused');
  // Twice as many where a minute ended meanwhile; and the one of the test before.
  expect(refused.length).toBeLessThanOrEqual(2 * refusalsMax + 1);
  expect(refused.find(({ by, status }) => status === 403 && by.name === 'r')).toMatchObject({
    error: 'forbidden',
    method: 'PATCH',
    about: { fleet_id: 'NOWHERE1' },
  });
  expect(refused[0]).toMatchObject({
    status: 401,
    error: 'invalid_token',
    by: { kind: 'unknown', name: null },
  });
});

it('bulk changes say what they selected and did, are no traffic, and say whether they were cut off', async () => {
  const fleet = await createFleet(server);
  const { fleetId } = fleet;
  const path = `/fleets/${fleetId}`;
  const headers = { authorization: `Bearer ${server.token}` };
  const admin = `${server.report.admin_url}/admin/v1${path}`;
  const imported = await fetch(`${admin}/devices:import?on_existing=skip`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/x-ndjson' },
    body: '{"device_id":"BULK000001"}\n{"device_id":"BULK000002"}\n{"device_id":"BULK000001"}\n[]\n',
  });
  expect((await imported.text()).split('\n')).toHaveLength(5);
  await server.admin('POST', `${path}/devices:change`, {
    select: { all: true },
    change: { add_tags: ['t'] },
  });
  const device = await fleet.createDevice();
  for (const _ of [1, 2]) await device.settle('reject', (await device.sendMail()).mailId);
  await server.admin('POST', `${path}/dead-letters:replay`, { filter: { reason: 'rejected' }, limit: 1 });
  const drop = { letters: [{ device_id: device.deviceId, mail_id: '019a0000-0000-7000-8000-000000000000' }] };
  await server.admin('POST', `${path}/dead-letters:drop`, drop);
  const sent = await server.admin('POST', `${path}/broadcasts`, { name: 'go', to: { tag: 't' } });
  for (const query of ['', '?with=digests']) {
    await (await fetch(`${admin}/devices:export${query}`, { headers })).text();
  }
  const aborted = new AbortController();
  const long = await fetch(`${admin}/devices:import`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: '{"count":1000000}',
    signal: aborted.signal,
  });
  await long.body?.getReader().read();
  aborted.abort();
  const changes = async () =>
    (await entries(`&fleet=${fleetId}`))
      .filter(({ book }) => book === 'change')
      .reverse()
      .slice(3);
  await until(async () => (await changes()).every(({ status }) => status !== null));
  const found = await changes();
  expect(
    found.map(({ route, error, about: { fleet_id: _, ...about } }) => [
      route.split(/[:/]/).at(-1),
      error,
      about,
    ]),
  ).toEqual([
    ['import', null, { on_existing: 'skip', created: 2, skipped: 1, error: 1 }],
    ['change', null, { selected: '{"all":true}', change: '{"add_tags":["t"]}', changed: 2 }],
    ['devices', null, { device_id: device.deviceId }],
    ['replay', null, { selected: '{"reason":"rejected"}', replayed: 1 }],
    ['drop', null, { device_id: device.deviceId, mail_id: expect.any(String), not_found: 1 }],
    ['broadcasts', null, expect.objectContaining({ broadcast_id: sent.body.broadcast_id, to: 'tag t' })],
    ['export', null, { with: 'digests', devices: 3 }],
    ['import', 'cut_off', { devices: expect.any(Number) }],
  ]);
});

it('no secret, body or payload is in the audit log, in its table or in the log', async () => {
  await server.admin('POST', '/fleets', {});
  const places = [await exported(), server.stderr];
  places.push(await auditText(server.report));
  for (const secret of secrets)
    for (const place of places) expect(place.includes(secret), secret).toBe(false);
});
