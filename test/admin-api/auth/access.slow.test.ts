/** Limits of access to the admin API: exports at once, and the bootstrap token. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createFleet } from '../../harness/devices/device.ts';
import { fleetpost } from '../../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { as } from '../../harness/server/token.ts';
import { until } from '../../harness/server/vitals.ts';

/** A stream of records that ends by itself never. */
function follow(token: string, fleetId: string, to: TestServer) {
  const url = `${to.report.admin_url}/admin/v1/fleets/${fleetId}/records?follow=true`;
  return fetch(url, { headers: { authorization: `Bearer ${token}` } });
}

it('so many exports are under way and no more, and none has all: those whose clients do not read, until they leave', async () => {
  await using own = await TestServer.start({ exportsMax: 2 });
  const fleets = [(await createFleet(own)).fleetId, (await createFleet(own)).fleetId] as const;
  const ask = (path: string, body?: object, signal?: AbortSignal) =>
    fetch(`${own.report.admin_url}/admin/v1${path}`, {
      headers: { authorization: `Bearer ${own.token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    });
  const [devices, others] = fleets.map((fleetId) => `/fleets/${fleetId}/devices`) as [string, string];
  // More than the connection holds, so that an export of them does not end by itself.
  const tags = Array.from({ length: 16 }, (_, n) => `${n}-${'x'.repeat(60)}`);
  for (const path of [devices, others]) {
    await (await ask(`${path}:import`, { count: 6_000, tags })).text();
  }
  const leaving = [new AbortController(), new AbortController()] as const;
  // Held to the end: fetch() cancels the body of a response that the garbage collector takes.
  const unread = [await ask(`${devices}:export`, undefined, leaving[0].signal)];
  expect((await ask(`${devices}:export`)).status).toBe(503);
  unread.push(await ask(`${others}:export`, undefined, leaving[1].signal));
  expect(unread.map(({ status }) => status)).toEqual([200, 200]);
  for (const path of [`${devices}:export?format=csv`, '/audit:export']) {
    const refused = await ask(path);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await refused.json()).toEqual({
      error: 'unavailable',
      msg: 'Too many exports of this fleet or in total are running (exportsMax). Retry later.',
    });
  }
  // The exports hold up no other requests.
  expect((await ask(`${devices}?limit=1`)).status).toBe(200);
  leaving[0].abort();
  await until(async () => {
    const answer = await ask('/audit:export');
    await answer.text();
    return answer.status === 200;
  });
  // An end of the server waits for none of them.
  expect(await own.stop()).toBe(0);
  leaving[1].abort();
  expect(unread[1]?.bodyUsed).toBe(false);
});

it('the bootstrap token is turned off and on by the configuration, at a start and by SIGHUP', async () => {
  const file = join(temporaryFolder(), 'fleetpost.json');
  const put = (bootstrapToken: boolean): void => writeFileSync(file, JSON.stringify({ bootstrapToken }));
  const data = temporaryFolder();
  const start = (): Promise<TestServer> =>
    TestServer.start({ logLevel: 'info' }, data, { flags: ['--config', file] });
  const inFile = (): string | undefined => JSON.parse(readFileSync(join(data, 'admin.json'), 'utf8')).token;
  put(true);
  const first = await start();
  const bootstrap = first.token;
  const reload = async (isOn: boolean): Promise<void> => {
    put(isOn);
    first.process.kill('SIGHUP');
    await until(() => (inFile() !== undefined) === isOn);
  };
  const { fleetId } = await createFleet(first);
  const stream = await follow(bootstrap, fleetId, first);
  await reload(false);
  await expect(stream.text()).rejects.toThrow();
  await until(() => first.stderr.includes('nobody can manage this server'));
  expect(await as(first, bootstrap, 'GET', '/fleets')).toMatchObject({
    status: 401,
    body: { error: 'invalid_token', msg: expect.stringContaining('bootstrapToken') },
  });
  const told = await fleetpost(['fleet', 'list', '--data', data]);
  expect(told).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('give an API token with --token'),
  });

  // The way back for who has locked himself out; the old one stays dead.
  await reload(true);
  const renewed = inFile() ?? '';
  expect((await as(first, bootstrap, 'GET', '/fleets')).status).toBe(401);
  const { body } = await as(first, renewed, 'POST', '/tokens', { name: 'me', scopes: ['admin'] });
  put(false);
  await first.stop();
  const second = await start();
  expect(second.stderr).not.toContain('nobody can manage');
  expect((await as(second, renewed, 'GET', '/fleets')).status).toBe(401);
  const environment = { FLEETPOST_TOKEN: String(body.token) };
  const listed = await fleetpost(['fleet', 'list', '--data', data, '--json'], environment);
  expect(JSON.parse(listed.stdout).items).toContainEqual(expect.objectContaining({ fleet_id: fleetId }));
  await second.stop();
});
