import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { createFleet } from '../../harness/devices/device.ts';
import { fleetpost, fleetpostJson } from '../../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { as, sessionBearer, type TokenAnswer } from '../../harness/server/token.ts';
import { until } from '../../harness/server/vitals.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.shared();
});

interface Made {
  token: string;
  token_id: string;
}

async function makeToken(body: object): Promise<Made> {
  return (
    await server.admin<Made & Record<string, unknown>>('POST', '/tokens', { name: 'operator', ...body })
  ).body;
}

async function codeOf(token: string, body: object = {}): Promise<string> {
  const made = await as(server, token, 'POST', '/console-codes', body);
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  return String(made.body.code);
}

function trade(code: string): Promise<TokenAnswer> {
  return as(server, '', 'POST', '/console-sessions', { code });
}

async function sessionOf(token: string, body: object = {}): Promise<Made> {
  const made = await trade(await codeOf(token, body));
  return { token: sessionBearer(made), token_id: String(made.body.token_id) };
}

it('a code becomes one session with the scopes and the fleet of its token, for twelve hours or one idle', async () => {
  const { fleetId } = await createFleet(server);
  const parent = await makeToken({ scopes: ['read', 'mail'], fleet_id: fleetId });
  const code = await codeOf(parent.token);
  expect(code).toMatch(/^[\w-]{22}$/);
  const beforeMs = Date.now();
  const traded = await trade(code);
  const { status, body, headers } = traded;
  expect({ status, body }).toEqual({
    status: 201,
    body: {
      key: expect.stringMatching(/^[A-Z0-9]{26}$/),
      token_id: expect.any(String),
      name: 'operator',
      scopes: ['read', 'mail'],
      fleet_id: fleetId,
      expires_at: expect.any(String),
      idle_at: expect.any(String),
    },
  });
  expect(headers.get('access-control-allow-origin')).toBe(null);
  const hours = (text: unknown): number => Math.round((Date.parse(String(text)) - beforeMs) / 3_600_000);
  expect([hours(body.expires_at), hours(body.idle_at)]).toEqual([12, 1]);
  const session = sessionBearer(traded);
  expect((await as(server, session, 'GET', '/self')).body).toEqual({
    kind: 'session',
    token_id: body.token_id,
    name: 'operator',
    scopes: ['read', 'mail'],
    fleet_id: fleetId,
    expires_at: body.expires_at,
    idle_at: body.idle_at,
  });
  expect((await as(server, session, 'GET', `/fleets/${fleetId}/devices`)).status).toBe(200);
  expect((await as(server, session, 'POST', `/fleets/${fleetId}/devices`, {})).status).toBe(403);

  const again = await trade(code);
  expect(again).toMatchObject({ status: 401, body: { error: 'invalid_token' } });
  expect(again.body.msg).toContain('fleetpost console');

  const { body: listed } = await server.admin<{ items: Record<string, unknown>[] }>(
    'GET',
    '/tokens?limit=1000',
  );
  expect(listed.items.find(({ token_id }) => token_id === body.token_id)).toMatchObject({
    kind: 'session',
    parent_id: parent.token_id,
    idle_at: body.idle_at,
    address: '127.0.0.1',
    browser: 'node',
  });
  expect(JSON.stringify(listed)).not.toContain(session);
});

it('a session has at most what its token has, makes no other, and ends itself alone', async () => {
  const parent = await makeToken({ scopes: ['read', 'mail'] });
  const { fleetId } = await createFleet(server);
  const less = await sessionOf(parent.token, { scopes: ['read'], fleet_id: fleetId });
  expect((await as(server, less.token, 'GET', '/self')).body).toMatchObject({
    scopes: ['read'],
    fleet_id: fleetId,
  });
  const more = await as(server, parent.token, 'POST', '/console-codes', { scopes: ['admin'] });
  expect(more).toMatchObject({ status: 403, body: { error: 'forbidden' } });
  const own = await makeToken({ scopes: ['read'], fleet_id: fleetId });
  const other = await as(server, own.token, 'POST', '/console-codes', { fleet_id: 'NOWHERE1' });
  expect(other.status).toBe(403);
  expect((await as(server, less.token, 'POST', '/console-codes', {})).status).toBe(403);

  const second = await sessionOf(parent.token);
  const stream = await fetch(`${server.report.admin_url}/admin/v1/fleets/${fleetId}/records?follow=true`, {
    headers: { authorization: `Bearer ${less.token}` },
  });
  expect(stream.status).toBe(200);
  expect((await as(server, less.token, 'DELETE', '/self')).status).toBe(204);
  await expect(stream.text()).rejects.toThrow();
  expect((await as(server, less.token, 'GET', '/self')).status).toBe(401);
  expect((await as(server, second.token, 'GET', '/self')).status).toBe(200);
  expect((await as(server, parent.token, 'DELETE', '/self')).status).toBe(400);
});

it('a session ends with its token, and its open streams with it; so does a code', async () => {
  const { fleetId } = await createFleet(server);
  const parent = await makeToken({ scopes: ['read'] });
  const { token } = await sessionOf(parent.token);
  const code = await codeOf(parent.token);
  const stream = await fetch(`${server.report.admin_url}/admin/v1/fleets/${fleetId}/records?follow=true`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(stream.status).toBe(200);
  expect((await server.admin('DELETE', `/tokens/${parent.token_id}`)).status).toBe(204);
  await expect(stream.text()).rejects.toThrow();
  expect((await as(server, token, 'GET', '/self')).status).toBe(401);
  expect(await trade(code)).toMatchObject({
    status: 401,
    body: { msg: expect.stringContaining('has ended') },
  });
});

it('a session ends no later than its token', async () => {
  const expires_at = new Date(Date.now() + 2_000).toISOString();
  const parent = await makeToken({ scopes: ['read'], expires_at });
  const { token } = await sessionOf(parent.token);
  expect((await as(server, token, 'GET', '/self')).body).toMatchObject({ expires_at });
  await until(() => Date.now() > Date.parse(expires_at));
  expect(await as(server, token, 'GET', '/self')).toMatchObject({
    status: 401,
    body: { msg: expect.stringContaining('has ended') },
  });
});

it('a token has at most 20 sessions: a further one ends the least recently used, and none of others', async () => {
  const parent = await makeToken({ scopes: ['read'] });
  const other = await sessionOf((await makeToken({ scopes: ['read'] })).token);
  const sessions: Made[] = [];
  while (sessions.length < 20) sessions.push(await sessionOf(parent.token));
  const statusOf = async ({ token }: Made) => (await as(server, token, 'GET', '/self')).status;
  // Used later than the others were made.
  for (const one of [sessions[0], sessions[2]]) expect(await statusOf(one as Made)).toBe(200);
  sessions.push(await sessionOf(parent.token), await sessionOf(parent.token));
  const statuses = await Promise.all([...sessions, other].map(statusOf));
  expect(statuses.flatMap((status, at) => (status === 200 ? [] : [at]))).toEqual([1, 3]);
  const { body } = await server.admin<{ items: { about: object }[] }>(
    'GET',
    `/audit?token=${parent.token_id}&limit=2`,
  );
  expect(body.items.map(({ about }) => about)).toContainEqual({
    token_id: sessions[21]?.token_id,
    ended: sessions[3]?.token_id,
  });
});

it('login and what a session does are audited; refused codes are not among the changes', async () => {
  const parent = await makeToken({ scopes: ['admin'] });
  const { token, token_id } = await sessionOf(parent.token);
  await as(server, token, 'POST', '/fleets', { name: 'made in the console' });
  for (let tries = 0; tries < 3; tries += 1) await trade('guess');
  const of = async (id: string) =>
    (await server.admin<{ items: Record<string, unknown>[] }>('GET', `/audit?token=${id}`)).body.items;
  const routes = (await of(parent.token_id)).map(({ method, route, status }) => [method, route, status]);
  expect(routes).toEqual([
    ['POST', '/admin/v1/console-sessions', 201],
    ['POST', '/admin/v1/console-codes', 201],
  ]);
  expect(await of(token_id)).toMatchObject([
    { by: { kind: 'session', id: token_id, name: 'operator' }, route: '/admin/v1/fleets', status: 201 },
  ]);
  const { body } = await server.admin<{ items: Record<string, unknown>[] }>('GET', '/audit?limit=1000');
  const refused = body.items.filter(
    ({ route, by }) => route === '/admin/v1/console-sessions' && (by as { kind: string }).kind === 'unknown',
  );
  expect(refused.length).toBeGreaterThan(0);
  for (const { book } of refused) expect(book).toBe('refused');
});

it('wrong codes in a row are refused more and more, and a right one passes all the same', async () => {
  const code = await codeOf(server.token);
  const statuses = new Set<number>();
  for (let tries = 0; tries < 40; tries += 1) statuses.add((await trade(`guess${tries}`)).status);
  expect([...statuses].sort()).toEqual([401, 429]);
  expect((await trade(code)).status).toBe(201);
});

it('the command prints a link that works once', async () => {
  const { url } = await fleetpostJson(server, ['console', 'PUMP000007', '--fleet', 'FLEET001']);
  const link = new URL(url);
  expect(link.origin + link.pathname).toBe(`${server.report.admin_url}/console/`);
  const fragment = new URLSearchParams(link.hash.slice(1));
  expect([...fragment.keys()]).toEqual(['code', 'fleet', 'device']);
  expect((await trade(fragment.get('code') ?? '')).status).toBe(201);
  const { stdout } = await fleetpost(['console', '--show-url', '--data', server.report.data]);
  expect(stdout).toMatch(/\/console\/#code=[\w-]{22}\n$/);
});

it('the command has a browser opened without the code, which it prints; a used one is a theft, if you did not use it', async () => {
  const folder = temporaryFolder();
  const opened = join(folder, 'opened');
  writeFileSync(
    join(folder, 'xdg-open'),
    `#!/bin/sh\necho "$@" > ${opened}.new && mv ${opened}.new ${opened}\n`,
    {
      mode: 0o755,
    },
  );
  const environment = { DISPLAY: ':0', PATH: `${folder}:${process.env.PATH}` };
  const args = ['console', 'PUMP000007', '--fleet', 'FLEET001', '--data', server.report.data];
  const { stdout } = await fleetpost(args, environment);
  const code = stdout.trimEnd().split('\n').at(-1) ?? '';
  expect(stdout).toMatch(/^Opened the console in a browser\. If it asks for one, enter this code/);
  await until(() => existsSync(opened));
  const line = readFileSync(opened, 'utf8').trim();
  expect(line).toBe(`${server.report.admin_url}/console/#fleet=FLEET001&device=PUMP000007`);
  expect((await trade(code)).status).toBe(201);
  const again = await trade(code);
  expect(again).toMatchObject({ status: 401, body: { msg: expect.stringContaining('somebody else did') } });
  rmSync(folder, { recursive: true });
});
