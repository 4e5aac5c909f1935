import type { Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet } from '../../harness/devices/device.ts';
import { RawConnection, requestText } from '../../harness/devices/raw.ts';
import { TestServer } from '../../harness/server/server.ts';
import { as, type TokenAnswer } from '../../harness/server/token.ts';
import { metric, until } from '../../harness/server/vitals.ts';

let server: TestServer;
let tokens: string[];
let fleetIds: string[];

beforeAll(async () => {
  // One token alone has two of the eight under way, and two that wait.
  server = await TestServer.start({ adminRequestsMax: 8, adminQueueMax: 8, adminQueueSeconds: 5 });
  fleetIds = [];
  tokens = [];
  for (const _ of ['its own', 'the other']) {
    const { fleetId } = await createFleet(server);
    fleetIds.push(fleetId);
    const body = { name: 'admission', scopes: ['read', 'provision'], fleet_id: fleetId };
    tokens.push((await server.admin<{ token: string }>('POST', '/tokens', body)).body.token);
  }
});
afterAll(() => server[Symbol.asyncDispose]());

function ask(which: 0 | 1): Promise<TokenAnswer> {
  return as(server, tokens[which] ?? '', 'GET', `/fleets/${fleetIds[which]}`);
}

/** A request that is under way for as long as its body does not end. */
async function begin(which: 0 | 1): Promise<RawConnection<Socket>> {
  const connection = await RawConnection.openPlain(server.report.admin_url);
  const headers = { Authorization: `Bearer ${tokens[which]}`, 'Content-Type': 'application/json' };
  const path = `/admin/v1/fleets/${fleetIds[which]}/devices`;
  connection.write(requestText('POST', path, { ...headers, 'Content-Length': '100' }, '{'));
  return connection;
}

async function counts(): Promise<number[]> {
  const names = ['under_way', 'waiting'].map((name) => `fleetpost_admin_requests_${name}`);
  return (await Promise.all(names.map((name) => metric(server, name)))).flat();
}

it('a token that asks for too much waits, then is refused, and holds up nobody else', async () => {
  const begun = [await begin(0), await begin(0)];
  await until(async () => (await counts())[0] === 2);
  const waiting = [ask(0), ask(0)];
  await until(async () => (await counts())[1] === 2);
  const beyond = await ask(0);
  expect([beyond.status, beyond.headers.get('retry-after')]).toEqual([503, '1']);
  expect(beyond.headers.get('x-request-id')).not.toBeNull();
  expect(beyond.body).toMatchObject({ error: 'unavailable', msg: expect.stringContaining('adminQueueMax') });
  expect((await ask(1)).status).toBe(200);
  expect((await as(server, '', 'GET', '/fleets')).status).toBe(401);
  expect((await as(server, server.token, 'GET', '/fleets')).status).toBe(200);
  expect((await fetch(`${server.report.admin_url}/readyz`)).status).toBe(200);
  // Who goes away makes room, and who waits long enough is told.
  begun[0]?.destroy();
  begun[1]?.destroy();
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
  // A request is under way until its answer has left, which may be a moment later.
  await until(async () => (await counts()).every((count) => count === 0));
  expect(await metric(server, 'fleetpost_admin_requests_refused_total')).toEqual([1]);
});

it('a request that waits is refused after adminQueueSeconds, and one whose client is gone is forgotten', async () => {
  const begun = [await begin(0), await begin(0)];
  await until(async () => (await counts())[0] === 2);
  const gone = new AbortController();
  const forgotten = fetch(`${server.report.admin_url}/admin/v1/fleets/${fleetIds[0]}`, {
    headers: { authorization: `Bearer ${tokens[0]}` },
    signal: gone.signal,
  });
  const late = ask(0);
  await until(async () => (await counts())[1] === 2);
  gone.abort();
  await expect(forgotten).rejects.toThrow();
  await until(async () => (await counts())[1] === 1);
  const { status, body } = await late;
  expect([status, body.msg]).toEqual([503, expect.stringContaining('adminQueueSeconds')]);
  for (const one of begun) one.destroy();
  await until(async () => (await counts())[0] === 0);
});

it('streams and what waits for records are not under way', async () => {
  const ended = new AbortController();
  const headers = { authorization: `Bearer ${tokens[0]}`, 'content-type': 'application/json' };
  const path = `${server.report.admin_url}/admin/v1/fleets/${fleetIds[0]}`;
  const open = { headers, signal: ended.signal };
  await server.admin('PUT', `/fleets/${fleetIds[0]}/consumers/waiting`, {});
  const fetches: Promise<Response>[] = [];
  for (let index = 0; index < 3; index += 1) {
    const request = { ...open, method: 'POST', body: '{"wait_seconds":60}' };
    fetches.push(fetch(`${path}/consumers/waiting/fetch`, request));
    expect((await fetch(`${path}/records?follow=true`, open)).status).toBe(200);
  }
  await until(async () => (await counts())[0] === 0);
  expect((await ask(0)).status).toBe(200);
  ended.abort();
  await Promise.allSettled(fetches);
});

it('what is asked in another form of the path is counted all the same', async () => {
  const begun = [await begin(0), await begin(0)];
  await until(async () => (await counts())[0] === 2);
  const connection = await RawConnection.openPlain(server.report.admin_url);
  const headers = { Authorization: `Bearer ${tokens[0]}` };
  connection.write(requestText('GET', `http://localhost/admin/v1/fleets/${fleetIds[0]}`, headers));
  await until(async () => (await counts())[1] === 1);
  for (const one of begun) one.destroy();
  expect((await connection.answer()).status).toBe(200);
  connection.destroy();
});
