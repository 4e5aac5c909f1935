import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { brotliCompressSync, gunzipSync, gzipSync } from 'node:zlib';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ConsoleFiles } from '../../../src/admin-api/console/console-files.ts';
import { addConsoleRoutes } from '../../../src/admin-api/console/console-routes.ts';
import { errorHandler } from '../../../src/admin-api/server/error-handler.ts';
import { createLog } from '../../../src/core/telemetry/log.ts';
import { temporaryFolder } from '../../harness/machine/temporary-folder.ts';

const html = '<!doctype html><title>Fleetpost</title>';
const script = 'export const answer = 42;\n'.repeat(50);
let app: FastifyInstance;
let port: number;

function consoleOf(folder: string): FastifyInstance {
  const made = Fastify();
  made.setErrorHandler(errorHandler(createLog('silent')));
  addConsoleRoutes(made as never, ConsoleFiles.read(folder));
  return made;
}

beforeAll(async () => {
  const folder = join(temporaryFolder(), 'console');
  mkdirSync(join(folder, 'assets'), { recursive: true });
  writeFileSync(join(folder, 'index.html'), html);
  writeFileSync(join(folder, 'assets/entry-1a2b.js'), script);
  writeFileSync(join(folder, 'assets/entry-1a2b.js.br'), brotliCompressSync(script));
  writeFileSync(join(folder, 'assets/entry-1a2b.js.gz'), gzipSync(script));
  writeFileSync(join(folder, 'notes.txt'), 'not to be served');
  writeFileSync(join(folder, '../outside.html'), 'outside');
  app = consoleOf(folder);
  await app.listen({ port: 0, host: '127.0.0.1' });
  port = Number(new URL(app.listeningOrigin).port);
});
afterAll(() => app.close());

interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
}

/** Sends the path as it is: fetch would resolve its dots. */
function get(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, headers, method }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const { statusCode: status = 0 } = response;
        resolve({ status, headers: response.headers, body: Buffer.concat(chunks) });
      });
    });
    sent.on('error', reject).end();
  });
}

it('the page comes with every header that keeps hostile names and payloads from becoming scripts', async () => {
  const { status, headers, body } = await get('/console/');
  expect({ status, body: body.toString() }).toEqual({ status: 200, body: html });
  expect(headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    'content-security-policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  });
});

it('a file is sent as small as the client takes it, and not again while it has not changed', async () => {
  const path = '/console/assets/entry-1a2b.js';
  const plain = await get(path);
  expect(plain.body.toString()).toBe(script);
  expect(plain.headers['cache-control']).toContain('immutable');
  const zipped = await get(path, { 'Accept-Encoding': 'gzip, br;q=0' });
  expect(zipped.headers).toMatchObject({
    'content-encoding': 'gzip',
    'content-type': 'text/javascript; charset=utf-8',
  });
  expect(gunzipSync(zipped.body).toString()).toBe(script);
  const best = await get(path, { 'Accept-Encoding': 'gzip, deflate, br' });
  expect(best.headers['content-encoding']).toBe('br');
  const tags = [plain, zipped, best].map(({ headers }) => String(headers.etag));
  expect(new Set(tags).size).toBe(3);
  const again = await get(path, { 'If-None-Match': `"other", W/${tags[0]}` });
  expect({ status: again.status, bytes: again.body.length }).toEqual({ status: 304, bytes: 0 });
  expect((await get(path, { 'If-None-Match': tags[1] ?? '' })).status).toBe(200);
  expect(await get(path, {}, 'HEAD')).toMatchObject({ status: 200, headers: { etag: tags[0] } });
});

it('no path leads out of the folder, nor to a file of another kind', async () => {
  for (const path of [
    '../outside.html',
    '..%2foutside.html',
    '%2e%2e/outside.html',
    'notes.txt',
    'index.html.br',
  ]) {
    expect((await get(`/console/${path}`)).status, path).toBe(404);
  }
});

it('a screen has no file of its own, and is drawn by the page; / leads browsers to it', async () => {
  const browser = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
  expect((await get('/console/devices/PUMP000007', browser)).body.toString()).toBe(html);
  expect((await get('/console/assets/gone.js')).status).toBe(404);
  expect(await get('/', browser)).toMatchObject({ status: 302, headers: { location: '/console/' } });
  expect((await get('/')).status).toBe(404);
  expect(await get('/console')).toMatchObject({ status: 301, headers: { location: '/console/' } });
});

it('a build without the console says so', async () => {
  const bare = consoleOf(join(temporaryFolder(), 'none'));
  const { statusCode, body } = await bare.inject('/console/');
  await bare.close();
  expect({ statusCode, body }).toEqual({ statusCode: 404, body: expect.stringContaining('npm run build') });
});
