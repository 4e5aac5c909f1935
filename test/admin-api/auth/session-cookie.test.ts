/** A session of the console in a browser: half of its secret in a cookie, half with the page. */

import { rmSync, writeFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { createAuthority, createServerCertificate } from '../../../src/server/certificates/authority.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { as } from '../../harness/server/token.ts';

let server: TestServer;
let host: string;
beforeAll(async () => {
  server = await TestServer.shared();
  host = new URL(server.report.admin_url).host;
});

interface Session {
  /** As a browser sends it. */
  cookie: string;
  key: string;
  setCookie: string;
  tokenId: string;
}

async function logIn(headers: Record<string, string> = {}, token = server.token): Promise<Session> {
  const { code } = (await as(server, token, 'POST', '/console-codes', {})).body;
  const answer = await ask('POST', '/console-sessions', headers, { code });
  const body = (await answer.json()) as { key: string; token_id: string };
  expect(answer.status, JSON.stringify(body)).toBe(201);
  const setCookie = answer.headers.get('set-cookie') ?? '';
  return { cookie: setCookie.split(';')[0] ?? '', key: body.key, setCookie, tokenId: body.token_id };
}

function ask(
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: object,
): Promise<Response> {
  return fetch(`${server.report.admin_url}/admin/v1${path}`, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
}

/** As the console's page sends its requests. */
function ofPage({ cookie, key }: Session): Record<string, string> {
  return { cookie, 'x-page-key': key, origin: `http://${host}` };
}

async function refusalOf(answer: Promise<Response>): Promise<[number, string]> {
  const { status, ...got } = await answer.then(async (one) => ({
    status: one.status,
    text: await one.text(),
  }));
  return [status, (JSON.parse(got.text) as { msg: string }).msg];
}

it('the cookie is for this host and port, no script and no other site, and lasts as long as the session', async () => {
  const { setCookie, key } = await logIn();
  const [pair = '', ...attributes] = setCookie.split('; ');
  expect(pair).toMatch(new RegExp(`^fleetpost-${new URL(`http://${host}`).port}=[A-Z0-9]{26}$`));
  expect(attributes).toEqual(['Path=/', 'HttpOnly', 'SameSite=Strict', 'Max-Age=43200']);
  expect(setCookie).not.toContain(key);
});

it('over HTTPS, of its own or of a proxy, the cookie is Secure and no other host can set it', async () => {
  const { setCookie } = await logIn({ origin: 'https://ops.example', 'sec-fetch-site': 'same-origin' });
  expect(setCookie).toMatch(
    /^__Host-fleetpost-\d+=\w{26}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure$/,
  );
  const terms = { hosts: ['127.0.0.1'], days: 1 };
  const { certificate, key } = await createServerCertificate(await createAuthority(terms), terms);
  const folder = temporaryFolder();
  const [adminTlsCertFile, adminTlsKeyFile] = [join(folder, 'admin.pem'), join(folder, 'admin-key.pem')];
  writeFileSync(adminTlsCertFile, certificate);
  writeFileSync(adminTlsKeyFile, key);
  await using secure = await TestServer.start({ adminTlsCertFile, adminTlsKeyFile });
  const { port } = new URL(secure.report.admin_url);
  const post = (path: string, body: object, authorization = ''): Promise<[string, string]> =>
    new Promise((resolve, reject) => {
      const sent = httpsRequest({
        host: '127.0.0.1',
        port,
        path: `/admin/v1${path}`,
        method: 'POST',
        rejectUnauthorized: false,
        headers: { 'content-type': 'application/json', ...(authorization && { authorization }) },
      });
      sent.on('error', reject).on('response', async (answer) => {
        const text = (await answer.toArray()).join('');
        resolve([answer.headers['set-cookie']?.[0] ?? '', text]);
      });
      sent.end(JSON.stringify(body));
    });
  const [, made] = await post('/console-codes', {}, `Bearer ${secure.token}`);
  const [cookie] = await post('/console-sessions', { code: (JSON.parse(made) as { code: string }).code });
  expect(cookie).toMatch(new RegExp(`^__Host-fleetpost-${port}=\\w{26}; .*; Secure$`));
  rmSync(folder, { recursive: true });
});

it('both halves are the session; each alone opens nothing, and neither does one with the half of another', async () => {
  const [mine, other] = [await logIn(), await logIn()];
  const self = (headers: Record<string, string>): Promise<Response> => ask('GET', '/self', headers);
  const found = await self(ofPage(mine));
  expect([found.status, await found.json()]).toMatchObject([
    200,
    { token_id: mine.tokenId, kind: 'session' },
  ]);
  expect(await refusalOf(self({ cookie: mine.cookie }))).toEqual([
    401,
    'The admin API needs a bearer token.',
  ]);
  expect(await refusalOf(self({ 'x-page-key': mine.key }))).toEqual([
    401,
    'Your session has ended (12 h are over, or its cookie was deleted).',
  ]);
  const unknown = [401, 'Your session has ended (this server does not know it).'];
  expect(await refusalOf(self({ ...ofPage(mine), 'x-page-key': other.key }))).toEqual(unknown);
  expect((await self({ authorization: `Bearer ${mine.key}` })).status).toBe(401);
  expect((await self({ authorization: `Bearer FPT-${mine.key}` })).status).toBe(401);
});

it('the cookie of another port of the host is none of ours, and an API token is used before both', async () => {
  const session = await logIn();
  const elsewhere = session.cookie.replace(/^fleetpost-\d+/, 'fleetpost-1');
  expect((await ask('GET', '/self', { ...ofPage(session), cookie: elsewhere })).status).toBe(401);
  const both = `${elsewhere.replace(/=.*/, '=WRONG')}; ${session.cookie}; theme=dark`;
  expect((await ask('GET', '/self', { ...ofPage(session), cookie: both })).status).toBe(200);
  const bearer = { ...ofPage(session), authorization: `Bearer ${server.token}` };
  expect(await (await ask('GET', '/self', bearer)).json()).toMatchObject({ kind: 'bootstrap' });
});

it('what changes something by cookie comes from a page of this origin alone', async () => {
  const session = await logIn();
  const { origin: _, ...halves } = ofPage(session);
  const make = (headers: Record<string, string>): Promise<number> =>
    ask('POST', '/fleets', { ...halves, ...headers }, { name: 'by cookie' }).then(({ status }) => status);
  const port = Number(new URL(`http://${host}`).port);
  for (const origin of [
    `http://127.0.0.1:${port + 1}`,
    'https://evil.example',
    'null',
    `https://${host}.evil`,
  ]) {
    expect(await make({ origin }), origin).toBe(403);
  }
  expect(await make({})).toBe(403);
  expect(await make({ origin: `http://${host}`, 'sec-fetch-site': 'same-site' })).toBe(403);
  expect(await make({ origin: `http://${host}` })).toBe(201);
  // Behind a proxy that sends its own Host.
  expect(await make({ origin: 'https://ops.example', 'sec-fetch-site': 'same-origin' })).toBe(201);
  // No page can read, either: it has no key.
  expect(
    (await ask('GET', '/fleets', { cookie: session.cookie, origin: 'https://evil.example' })).status,
  ).toBe(401);
});

it('a page of another origin cannot log in', async () => {
  const { code } = (await as(server, server.token, 'POST', '/console-codes', {})).body;
  const trade = (origin: string): Promise<Response> => ask('POST', '/console-sessions', { origin }, { code });
  expect((await trade('http://127.0.0.1:1')).status).toBe(403);
  expect((await trade(`http://${host}`)).status).toBe(201);
});

it('logging out ends the session whatever it may, and the browser forgets the cookie under both names', async () => {
  for (const scope of ['read', 'mail', 'provision']) {
    const { token } = (
      await server.admin<{ token: string }>('POST', '/tokens', { name: 'one', scopes: [scope] })
    ).body;
    const session = await logIn({}, token);
    const answer = await ask('DELETE', '/self', ofPage(session));
    expect(answer.status).toBe(204);
    expect(answer.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^fleetpost-\d+=; .*Max-Age=0$/),
      expect.stringMatching(/^__Host-fleetpost-\d+=; .*Max-Age=0; Secure$/),
    ]);
    expect(await refusalOf(ask('GET', '/self', ofPage(session)))).toEqual([
      401,
      'Your session has ended (revoked, or 20 later logins with its token).',
    ]);
  }
});

it('a login in a browser ends the session that it had', async () => {
  const first = await logIn();
  const second = await logIn(ofPage(first));
  expect((await ask('GET', '/self', ofPage(first))).status).toBe(401);
  expect((await ask('GET', '/self', ofPage(second))).status).toBe(200);
});
