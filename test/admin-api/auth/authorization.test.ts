import { beforeAll, expect, it } from 'vitest';
import { scopes } from '../../../src/core/scope.ts';
import { createFleet } from '../../harness/devices/device.ts';
import { fleetpost, fleetpostJson } from '../../harness/server/command.ts';
import { TestServer } from '../../harness/server/server.ts';
import { as } from '../../harness/server/token.ts';
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
  const answer = await server.admin<Made>('POST', '/tokens', { name: 'test', ...body });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer));
  return answer.body;
}

type Operations = Record<string, { security?: Record<string, string[]>[]; parameters?: { name: string }[] }>;

/** Every operation of the document, its path filled with names of nothing. */
async function operations(): Promise<{ method: string; path: string; scope: string; named: string }[]> {
  const document = (await (await fetch(`${server.report.admin_url}/openapi.json`)).json()) as {
    paths: Record<string, Operations>;
  };
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { security }]) => ({
      method: method.toUpperCase(),
      named: path,
      // A fleet that does not exist: what gets past the check is answered 400 or 404, and does nothing.
      path: path.replace('{fleet_id}', 'NOWHERE1').replace(/\{\w+\}/g, 'x1'),
      scope: security?.[0]?.token === undefined ? '' : (security[0].token[0] ?? 'any'),
    })),
  );
}

/** Bodies that nothing comes of. */
const harmless = { nothing: true };

it('every route but the open ones names its scope, and lets in those who have it alone', async () => {
  const all = await operations();
  const open = all.filter(({ scope }) => scope === '').map(({ named }) => named);
  expect(open.sort()).toEqual(['/admin/v1/console-sessions', '/healthz', '/metrics', '/readyz']);
  const guarded = all.filter(({ scope }) => scope !== '');
  expect(guarded.length).toBeGreaterThan(30);
  for (const held of scopes) {
    const { token } = await makeToken({ scopes: [held] });
    for (const { method, path, named, scope } of guarded) {
      const body = method === 'GET' || method === 'DELETE' ? undefined : harmless;
      const { status, headers } = await as(server, token, method, path.replace('/admin/v1', ''), body);
      const may = held === 'admin' || held === scope || scope === 'any';
      expect(status === 403, `${held}: ${method} ${named} is ${status}`).toBe(!may);
      expect(status, `${held}: ${method} ${named}`).not.toBe(401);
      expect(status, `${held}: ${method} ${named}`).toBeLessThan(500);
      if (!may) expect(headers.get('www-authenticate')).toContain(`scope="${scope}"`);
    }
  }
});

it('no array of different items can be so long that comparing each with each holds up the server', async () => {
  const document = await (await fetch(`${server.report.admin_url}/openapi.json`)).json();
  let arrays = 0;
  const check = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    const { uniqueItems, items } = node as { uniqueItems?: boolean; items?: { type?: string } };
    if (uniqueItems === true) {
      arrays += 1;
      expect(items).toMatchObject({ type: 'string' });
    }
    for (const child of Object.values(node)) check(child);
  };
  check(document);
  expect(arrays).toBeGreaterThan(3);
  const { status } = await as(server, server.token, 'HEAD', '/audit:export');
  expect(status, 'HEAD would make an export for nobody').toBe(404);
});

it('a token of several scopes has each, and what it lacks is named', async () => {
  const { fleetId } = await createFleet(server);
  const { token } = await makeToken({ scopes: ['read', 'mail'] });
  expect((await as(server, token, 'GET', `/fleets/${fleetId}/devices`)).status).toBe(200);
  const { status, body } = await as(server, token, 'POST', `/fleets/${fleetId}/devices`, {});
  expect({ status, body }).toEqual({
    status: 403,
    body: { error: 'forbidden', msg: 'This token lacks the scope provision.' },
  });
});

it('a token of one fleet reaches that fleet alone, and cannot tell whether there are others', async () => {
  const [own, other] = [await createFleet(server), await createFleet(server)];
  const { token } = await makeToken({ scopes: ['admin'], fleet_id: own.fleetId });
  const listed = await as(server, token, 'GET', '/fleets');
  expect(listed.body.items).toEqual([expect.objectContaining({ fleet_id: own.fleetId })]);
  expect(listed.body.next).toBeNull();
  expect((await as(server, token, 'POST', `/fleets/${own.fleetId}/devices`, {})).status).toBe(201);
  const refusals = await Promise.all(
    [other.fleetId, 'NOWHERE1', `${own.fleetId}%00`, own.fleetId.toLowerCase()].map((fleetId) =>
      as(server, token, 'GET', `/fleets/${fleetId}/devices`),
    ),
  );
  for (const { status, body } of refusals) {
    expect({ status, body }).toEqual({
      status: 403,
      body: { error: 'forbidden', msg: 'This token is for another fleet.' },
    });
  }
  // Tokens or fleets of its own would give the caller more than this fleet.
  for (const [method, path, body] of [
    ['POST', '/tokens', { name: 'more', scopes: ['admin'] }],
    ['GET', '/tokens', undefined],
    ['POST', '/fleets', {}],
    ['GET', '/backup', undefined],
  ] as const) {
    expect((await as(server, token, method, path, body)).body).toMatchObject({
      msg: 'This token is for one fleet, and this route is for all.',
    });
  }
  // Every route that there is, at the other fleet.
  for (const { method, path, named, scope } of await operations()) {
    // Open routes, and those about the token itself, are about no fleet.
    if (scope === '' || scope === 'any') continue;
    const at = path.replace('NOWHERE1', other.fleetId).replace('/admin/v1', '');
    const { status } = await as(
      server,
      token,
      method,
      at,
      method === 'GET' || method === 'DELETE' ? undefined : harmless,
    );
    // Those that narrow a list to the token's fleet.
    if (status !== 200) expect(status, `${method} ${named}`).toBe(403);
    else expect(named.includes('{fleet_id}'), named).toBe(false);
  }
});

it('a token of one fleet can lower the limits that keep it from the others, and raise none', async () => {
  const { fleetId } = await createFleet(server, { device_bytes_per_second_max: 1_000 });
  const { token } = await makeToken({ scopes: ['provision', 'admin'], fleet_id: fleetId });
  const path = `/fleets/${fleetId}`;
  const change = (body: object) => as(server, token, 'PATCH', path, body);
  expect(await change({ device_bytes_per_second_max: 500, name: 'Own' })).toMatchObject({
    status: 200,
    body: { device_bytes_per_second_max: 500, name: 'Own' },
  });
  for (const wanted of [501, 0, null]) {
    expect(await change({ device_bytes_per_second_max: wanted, name: 'Other' })).toMatchObject({
      status: 403,
      body: {
        error: 'forbidden',
        msg: 'A token of one fleet can only lower device_bytes_per_second_max, which is 500: use a token for all fleets.',
      },
    });
  }
  // None before: that is lowered, too.
  expect((await change({ requests_per_second_max: 100_000, log_bytes_max: 100_000 })).status).toBe(200);
  expect((await change({ log_bytes_max: null })).status).toBe(403);
  expect((await server.admin('GET', path)).body).toMatchObject({
    name: 'Own',
    device_bytes_per_second_max: 500,
    requests_per_second_max: 100_000,
    log_bytes_max: 100_000,
  });
  // Whoever has all fleets may raise it.
  const raised = { device_bytes_per_second_max: null, requests_per_second_max: 0 };
  expect((await server.admin('PATCH', path, raised)).status).toBe(200);
});

it('a token is listed without its text, and revoking it works with the next request', async () => {
  const { token, token_id } = await makeToken({ scopes: ['read'], name: 'Dashboard' });
  expect(token).toMatch(/^FPT-[A-Z0-9]{32}$/);
  expect((await as(server, token, 'GET', '/fleets')).status).toBe(200);
  const listed = await server.admin<{ items: Record<string, unknown>[] }>('GET', '/tokens?limit=1000');
  const found = listed.body.items.find((one) => one.token_id === token_id);
  expect(found).toEqual({
    token_id,
    kind: 'token',
    name: 'Dashboard',
    scopes: ['read'],
    fleet_id: null,
    created_at: expect.any(String),
    expires_at: null,
    idle_at: null,
    parent_id: null,
    expired: false,
    last_used_at: expect.any(String),
    address: null,
    browser: null,
  });
  expect(JSON.stringify(listed.body)).not.toContain(token);
  const paged = await server.admin<{ items: unknown[]; next: string }>('GET', '/tokens?limit=1');
  expect(paged.body.items).toHaveLength(1);
  expect(
    (
      await server.admin<{ items: { token_id: string }[] }>('GET', `/tokens?after=${paged.body.next}`)
    ).body.items.at(-1),
  ).toMatchObject({ token_id });

  expect((await server.admin('DELETE', `/tokens/${token_id}`)).status).toBe(204);
  expect(await as(server, token, 'GET', '/fleets')).toMatchObject({
    status: 401,
    body: { error: 'invalid_token', msg: 'This token does not exist or was revoked.' },
  });
  expect((await server.admin('DELETE', `/tokens/${token_id}`)).body).toMatchObject({
    error: 'token_not_found',
  });
});

it('a stream that is open when its token is revoked is cut', async () => {
  const { fleetId } = await createFleet(server);
  const { token, token_id } = await makeToken({ scopes: ['provision'], fleet_id: fleetId });
  const answer = await fetch(`${server.report.admin_url}/admin/v1/fleets/${fleetId}/devices:import`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ count: 1_000_000 }),
  });
  expect(answer.status).toBe(200);
  // Nobody reads on, so it is far from its end.
  expect((await server.admin('DELETE', `/tokens/${token_id}`)).status).toBe(204);
  await expect(answer.text()).rejects.toThrow();
});

/** A stream of records that ends by itself never. */
function follow(token: string, fleetId: string, to = server) {
  const url = `${to.report.admin_url}/admin/v1/fleets/${fleetId}/records?follow=true`;
  return fetch(url, { headers: { authorization: `Bearer ${token}` } });
}

it('a token ends when it expires, and what is open of it, and a time that is past is refused', async () => {
  const soon = new Date(Date.now() + 1_500).toISOString();
  const { token, token_id } = await makeToken({ scopes: ['read'], expires_at: soon });
  expect((await as(server, token, 'GET', '/fleets')).status).toBe(200);
  const stream = await follow(token, (await createFleet(server)).fleetId);
  await until(() => Date.now() > Date.parse(soon));
  expect(await as(server, token, 'GET', '/fleets')).toMatchObject({
    status: 401,
    body: { error: 'invalid_token', msg: 'This token has expired.' },
  });
  await expect(stream.text()).rejects.toThrow();
  const { body } = await server.admin<{ items: Record<string, unknown>[] }>('GET', '/tokens?limit=1000');
  expect(body.items.find((one) => one.token_id === token_id)).toMatchObject({ expired: true });
  for (const expires_at of ['2020-01-01T00:00:00Z', '2099-01-01', 'tomorrow', '2099-13-45T00:00:00Z', 5]) {
    const refused = await server.admin('POST', '/tokens', { name: 'late', scopes: ['read'], expires_at });
    expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_body' } });
  }
});

it('tokens are made, listed and revoked by commands', async () => {
  const run = (...args: string[]) => fleetpostJson(server, args);
  const { fleetId } = await createFleet(server);
  const made = await run(
    'token',
    'create',
    '--name',
    'CI',
    '--scopes',
    'read,mail',
    '--fleet',
    fleetId,
    '--expires',
    '90d',
  );
  expect(made).toMatchObject({ name: 'CI', scopes: ['read', 'mail'], fleet_id: fleetId });
  expect(Date.parse(made.expires_at) - Date.now()).toBeGreaterThan(89 * 86_400_000);
  const list = await run('token', 'list');
  expect(list.items).toContainEqual(expect.objectContaining({ token_id: made.token_id }));
  expect(JSON.stringify(list)).not.toContain(made.token);
  const own = await fleetpost([
    'fleet',
    'list',
    '--data',
    server.report.data,
    '--token',
    made.token,
    '--json',
  ]);
  expect(JSON.parse(own.stdout).items).toEqual([expect.objectContaining({ fleet_id: fleetId })]);
  await run('token', 'revoke', made.token_id);
  const refused = await fleetpost(['fleet', 'list', '--data', server.report.data, '--token', made.token]);
  expect(refused).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('does not exist or was revoked'),
  });
  const wrong = await fleetpost(['token', 'create', '--name', 'x', '--scopes', 'read,root']);
  expect(wrong).toMatchObject({ status: 1, stderr: expect.stringContaining('read,mail,provision,admin') });
});
