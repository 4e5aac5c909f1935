import { spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { freePort } from '../../src/device/simulator/run/free-port.ts';
import { formatVersion } from '../../src/storage/lmdb/environment/manifest.ts';
import { createFleet } from '../harness/devices/device.ts';
import { fleetpost } from '../harness/server/command.ts';
import { mainFile, ownCertificate, shards, TestServer, temporaryFolder } from '../harness/server/server.ts';

const loopback = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];

/** Starts `serve` as a person would, and answers what it printed once it is there. */
async function serve(
  data: string,
  flags = ['--shards', String(shards)],
): Promise<{ text: string; stop(): Promise<number | null> }> {
  const args = [mainFile, 'serve', '--data', data, ...flags, ...loopback];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const exit = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  let text = '';
  for await (const chunk of child.stdout) {
    text += chunk;
    if (/(Opened|Created) .*Certificate.*\n/.test(text) || text.includes('/v1/events\n')) break;
  }
  return {
    text,
    stop: () => {
      child.kill('SIGTERM');
      return exit;
    },
  };
}

it('a first start with --demo makes everything and prints five commands; the second prints no secret', async () => {
  const data = join(temporaryFolder(), 'data');
  const first = await serve(data, ['--demo', '--shards', String(shards)]);
  const commands = first.text.split('\n').filter((line) => line.startsWith('curl '));
  expect(commands).toHaveLength(5);
  expect(await first.stop()).toBe(0);

  const certificate = new X509Certificate(readFileSync(join(data, 'tls', 'cert.pem')));
  expect(certificate.ca).toBe(false);
  // serverAuth.
  expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  expect(certificate.subjectAltName).toBe('DNS:localhost, IP Address:127.0.0.1');
  expect(certificate.publicKey.asymmetricKeyDetails).toMatchObject({ namedCurve: 'prime256v1' });
  expect(statSync(join(data, 'tls', 'key.pem')).mode & 0o777).toBe(0o600);
  expect(statSync(join(data, 'admin.json')).mode & 0o777).toBe(0o600);

  const second = await serve(data, ['--demo', '--shards', String(shards)]);
  expect(second.text).toMatch(new RegExp(`Opened .*: ${shards} shards?, 1 fleet`));
  expect(second.text).not.toContain('FOS-');
  expect(await second.stop()).toBe(0);
});

it('a first start makes no fleet and prints no secret: the output of a service is kept in a journal', async () => {
  const data = join(temporaryFolder(), 'data');
  const child = spawn(process.execPath, [mainFile, 'serve', '--data', data, ...loopback]);
  const printed: string[] = [];
  for (const pipe of [child.stdout, child.stderr]) {
    pipe.setEncoding('utf8').on('data', (text: string) => printed.push(text));
  }
  await expect.poll(() => printed.join('')).toMatch(/Created .*, 0 fleets.*\n.*fleet create/);
  const { token } = JSON.parse(readFileSync(join(data, 'admin.json'), 'utf8')) as { token: string };
  const { stdout } = await fleetpost(['fleet', 'list', '--data', data, '--json']);
  expect(JSON.parse(stdout)).toEqual({ items: [], next: null });
  child.kill('SIGTERM');
  await once(child, 'exit');
  expect(printed.join('')).not.toContain('FOS-');
  expect(printed.join('')).not.toContain(token);
});

it('in a data folder that others can enter they can read nothing, and the log says how to close it', async () => {
  const data = join(temporaryFolder(), 'data');
  mkdirSync(data);
  chmodSync(data, 0o755);
  await using server = await TestServer.start({ ...ownCertificate }, data);
  expect(server.stderr).toContain(`other users can enter ${data}; run: chmod 700 ${data}`);
  const device = await (await createFleet(server)).createDevice();
  await device.sendMail('note', '{}');
  const copy = join(temporaryFolder(), 'backup');
  expect((await fleetpost(['backup', copy, '--data', data])).status).toBe(0);
  await server.stop();
  for (const folder of [data, copy]) {
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    expect(files.length).toBeGreaterThan(4);
    expect(files.filter((file) => (statSync(join(folder, file)).mode & 0o077) !== 0)).toEqual([]);
  }
  const restored = join(temporaryFolder(), 'restored');
  mkdirSync(restored);
  chmodSync(restored, 0o755);
  const { stderr } = await fleetpost(['restore', copy, '--data', restored, '--json']);
  expect(stderr).toBe(`fleetpost: other users can enter ${restored}; run: chmod 700 ${restored}\n`);
  chmodSync(data, 0o700);
  await using closed = await TestServer.start({}, data);
  expect(closed.stderr).not.toContain('other users');
});

it('the token stays the same over a restart, and a folder keeps its shard count when none is set', async () => {
  const data = temporaryFolder();
  // Another number than the default, which is that of cores.
  const count = availableParallelism() + 1;
  const first = await TestServer.start({ shards: count }, data);
  const { token } = first;
  await first.stop();
  const second = await serve(data, []);
  expect(second.text).toMatch(new RegExp(`Opened .*: ${count} shards, 0 fleets`));
  expect(JSON.parse(readFileSync(join(data, 'admin.json'), 'utf8'))).toMatchObject({ token });
  expect(await second.stop()).toBe(0);
});

it.each([
  [['--listen', '0.0.0.0:0', '--admin', '127.0.0.1:0'], /needs a certificate that devices can trust/],
  [['--listen', '127.0.0.1:0', '--admin', '0.0.0.0:0'], /admin API speaks plain HTTP/],
  [['--listen', '8443'], /must be HOST:PORT/],
  [[...loopback, '--shards', '0'], /shards must be >= 1/],
  [[...loopback, '--config', '/nowhere.json'], /cannot be read/],
])('serve %j is refused with a sentence', async (args, message) => {
  const { status, stdout, stderr } = await fleetpost(['serve', '--data', temporaryFolder(), ...args]);
  expect(status).toBe(1);
  expect(stdout).toBe('');
  expect(stderr).toMatch(message);
  expect(stderr.trimEnd().split('\n')).toHaveLength(1);
});

it('certificate files that do not fit are named', async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'cert.pem'), 'nonsense');
  writeFileSync(join(folder, 'key.pem'), 'nonsense');
  const environment = { FLEETPOST_TLS_CERT_FILE: join(folder, 'cert.pem') };
  const half = await fleetpost(['serve', '--data', join(folder, 'a'), ...loopback], environment);
  expect(half.stderr).toMatch(/Set both or neither/);
  const bad = await fleetpost(['serve', '--data', join(folder, 'b'), ...loopback], {
    ...environment,
    FLEETPOST_TLS_KEY_FILE: join(folder, 'key.pem'),
  });
  expect(bad.stderr).toMatch(/certificate .*cert\.pem cannot be used/);
});

it('a data folder that is in use, damaged, foreign or of another format is refused', async () => {
  await using server = await TestServer.start();
  const start = (data: string) => fleetpost(['serve', '--data', data, ...loopback]);
  expect((await start(server.report.data)).stderr).toMatch(/in use by process/);
  const folder = temporaryFolder();
  const withManifest = (name: string, manifest: string): string => {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'manifest.json'), manifest);
    return join(folder, name);
  };
  expect((await start(withManifest('damaged', '{"format":'))).stderr).toMatch(/is damaged/);
  const format = formatVersion + 1;
  const newer = withManifest('newer', JSON.stringify({ format, shards: 1, complete: true }));
  expect((await start(newer)).stderr).toContain(
    `has format ${format}, written by another version of Fleetpost`,
  );
  mkdirSync(join(folder, 'foreign'));
  writeFileSync(join(folder, 'foreign', 'letters.txt'), 'dear');
  expect((await start(join(folder, 'foreign'))).stderr).toMatch(/not a Fleetpost data folder/);
});

it('a port that is taken is refused, and the folder is free again', async () => {
  await using server = await TestServer.start();
  const data = temporaryFolder();
  const taken = new URL(server.url).host;
  const serveOn = (listen: string, admin: string) =>
    fleetpost(['serve', '--data', data, '--listen', listen, '--admin', admin]);
  const refused = await serveOn(taken, '127.0.0.1:0');
  expect(refused).toMatchObject({ status: 1, stderr: expect.stringMatching(/another server using it/i) });
  const admin = new URL(server.report.admin_url).host;
  const refusedToo = await serveOn('127.0.0.1:0', admin);
  expect(refusedToo).toMatchObject({ status: 1, stderr: expect.stringMatching(/admin API/) });
  // A port given by its number is no more shared than one that the system chose.
  await using numbered = await TestServer.start({ listen: taken.replace(/\d+$/, String(await freePort())) });
  expect((await serveOn(new URL(numbered.url).host, '127.0.0.1:0')).stderr).toMatch(
    /another server using it/i,
  );
  // Nothing was answered yet, so this is still a first start, with whatever shard count is asked for now.
  await using after = await TestServer.start({}, data, { flags: ['--demo'] });
  expect(after.report.demo).not.toBeNull();
  expect(await after.stop()).toBe(0);
});

it('fleetpost config shows every value with its source', async () => {
  const file = join(temporaryFolder(), 'fleetpost.json');
  writeFileSync(file, '{"mailboxMailsMax":77}');
  const environment = { FLEETPOST_LOG_LEVEL: 'warn', FLEETPOST_CONFIG: file };
  const { stdout } = await fleetpost(
    ['config', '--json', '--shards', '5', '--probe', '127.0.0.1:1'],
    environment,
  );
  const { items } = JSON.parse(stdout) as { items: { key: string; value: unknown; source: string }[] };
  const of = (key: string) => items.find((item) => item.key === key);
  expect(of('shards')).toMatchObject({ value: 5, source: 'flag' });
  expect(of('probe')).toMatchObject({ value: '127.0.0.1:1', source: 'flag' });
  expect(of('logLevel')).toMatchObject({ value: 'warn', source: 'environment' });
  expect(of('mailboxMailsMax')).toMatchObject({ value: 77, source: 'file' });
  expect(of('bodyBytesMax')).toMatchObject({ value: 65_536, source: 'default' });
});
