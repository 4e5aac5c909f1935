import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { Agent } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice } from '../../harness/devices/device.ts';
import { RawConnection, requestText } from '../../harness/devices/raw.ts';
import { makeCertificate, nameShown, writeCertificate } from '../../harness/server/certificate.ts';
import { shards, TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { openFiles, ownMebibytes, until } from '../../harness/server/vitals.ts';

/** One look of the watch comes every 5 s. */
const lookTimeoutMs = 20_000;

const folder = temporaryFolder();
// As Kubernetes lays files out: the names are links through a link, and only that one is turned.
const certFile = join(folder, 'tls.crt');
const keyFile = join(folder, 'tls.key');
let server: TestServer;

async function turnTo(name: string): Promise<void> {
  const target = join(folder, `..${name}`);
  mkdirSync(target);
  await writeCertificate(name, { certFile: join(target, 'tls.crt'), keyFile: join(target, 'tls.key') });
  symlinkSync(target, join(folder, '..new'));
  renameSync(join(folder, '..new'), join(folder, '..data'));
}

beforeAll(async () => {
  await turnTo('first');
  symlinkSync('..data/tls.crt', certFile);
  symlinkSync('..data/tls.key', keyFile);
  server = await TestServer.start({ tlsCertFile: certFile, tlsKeyFile: keyFile });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function open(): Promise<RawConnection> {
  const socket = connect({ host: '127.0.0.1', port: server.port, rejectUnauthorized: false });
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
  return new RawConnection(socket);
}

function heartbeat(device: TestDevice): string {
  return requestText('POST', '/v1/heartbeat', { ...device.credentials });
}

/** Requests on kept and on new connections until told to stop; answers how many, and every failure. */
function load(device: TestDevice): { stop(): Promise<{ answered: number; failures: string[] }> } {
  let isOver = false;
  let answered = 0;
  const failures: string[] = [];
  const client = async (makeAgent: () => Agent, requestsEach: number): Promise<void> => {
    while (!isOver) {
      const agent = makeAgent();
      for (let i = 0; i < requestsEach && !isOver; i += 1) {
        try {
          const { status } = await device.request('POST', '/v1/datapoint/reading', { i }, {}, agent);
          if (status === 201) answered += 1;
          else failures.push(String(status));
        } catch (error) {
          failures.push(String((error as Error).cause ?? error));
        }
      }
      await agent.close();
    }
  };
  const makeAgent = () =>
    new Agent({ connect: { rejectUnauthorized: false }, connections: 1, pipelining: 1 });
  const clients = [
    ...Array.from({ length: 4 }, () => client(makeAgent, Number.POSITIVE_INFINITY)),
    ...Array.from({ length: 4 }, () => client(makeAgent, 1)),
  ];
  return {
    stop: async () => {
      isOver = true;
      await Promise.all(clients);
      return { answered, failures };
    },
  };
}

it('new certificate files are taken up under load: no request is lost, connections and streams live on', async () => {
  const device = await (await createFleet(server)).createDevice();
  const kept = await Promise.all(Array.from({ length: 2 * shards }, open));
  const stream = await open();
  stream.write(requestText('GET', '/v1/events', { ...device.credentials, Accept: 'text/event-stream' }));
  await until(() => stream.text.includes('event: connected'));
  // Idle connections are closed after some seconds, whatever the certificate.
  const keepAlive = setInterval(() => {
    for (const connection of kept) connection.write(heartbeat(device));
  }, 1_000);
  const running = load(device);
  expect(await nameShown(server)).toBe('first');

  await turnTo('second');
  await until(async () => (await nameShown(server)) === 'second', lookTimeoutMs);
  await turnTo('third');
  server.process.kill('SIGHUP');
  await until(async () => (await nameShown(server)) === 'third');
  for (let i = 0; i < 3 * shards; i += 1) expect(await nameShown(server)).toBe('third');

  const { answered, failures } = await running.stop();
  clearInterval(keepAlive);
  expect(failures).toEqual([]);
  expect(answered).toBeGreaterThan(100);
  for (const connection of kept) {
    await until(() => connection.text.endsWith('{"ok":true}'));
    expect(connection.text.match(/HTTP\/1\.1 (?!201)/)).toBeNull();
    expect(connection.isClosed).toBe(false);
    connection.destroy();
  }
  const { mailId } = await device.sendMail();
  await until(() => stream.text.includes(mailId));
  stream.destroy();
});

it('a pair that is half written, or does not belong together, is not taken, and the next one is', async () => {
  const before = await nameShown(server);
  const { cert, key } = await makeCertificate('fourth');
  const files = { certFile: join(folder, 'plain.crt'), keyFile: join(folder, 'plain.key') };
  copyFileSync(certFile, files.certFile);
  copyFileSync(keyFile, files.keyFile);
  await using other = await TestServer.start({ tlsCertFile: files.certFile, tlsKeyFile: files.keyFile });
  const refused = () => other.stderr.split('keeping the current certificate').length - 1;

  writeFileSync(files.certFile, cert);
  await until(() => refused() === 1, lookTimeoutMs);
  expect(other.stderr).toContain('does not belong to the certificate');
  writeFileSync(files.certFile, cert.slice(0, 200));
  await until(() => refused() === 2, lookTimeoutMs);
  expect(other.stderr).toContain('plain.crt cannot be used');
  rmSync(files.keyFile);
  await until(() => refused() === 3, lookTimeoutMs);
  expect(await nameShown(other)).toBe(before);

  writeFileSync(files.certFile, cert);
  writeFileSync(files.keyFile, key);
  await until(async () => (await nameShown(other)) === 'fourth', lookTimeoutMs);
});

it('renewals one after another leave neither files nor memory behind', async () => {
  const renew = async (name: string): Promise<void> => {
    await turnTo(name);
    server.process.kill('SIGHUP');
    await until(async () => (await nameShown(server)) === name);
  };
  for (let i = 0; i < 5; i += 1) await renew(`warm${i}`);
  const before = { files: openFiles(server), mebibytes: ownMebibytes(server) };
  for (let i = 0; i < 40; i += 1) await renew(`next${i}`);
  await until(() => openFiles(server) <= before.files + 2);
  // The library keeps 40 KB of every app it ever made; all else goes.
  expect(ownMebibytes(server) - before.mebibytes).toBeLessThan(30);
  expect(readdirSync(folder).length).toBeGreaterThan(40);
  expect(server.isRunning).toBe(true);
});
