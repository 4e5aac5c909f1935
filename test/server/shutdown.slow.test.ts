/** The end of a server: orderly, late, or by a kill. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { uuidv7 } from 'uuidv7';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, oneConnection, type TestDevice } from '../harness/devices/device.ts';
import { RawConnection, requestText } from '../harness/devices/raw.ts';
import { mainFile, shards, TestServer, temporaryFolder } from '../harness/server/server.ts';
import { datapointHead, openStreams, pause, until } from '../harness/server/vitals.ts';
import { readRecords } from '../harness/storage/log.ts';

const exitSecondsMax = 15;

/** Clients that write until the server is gone, and remember everything that it promised them. */
class Load {
  readonly #server: TestServer;
  readonly #device: TestDevice;
  readonly #waiting: string[];
  readonly datapoints: string[] = [];
  readonly queued: string[] = [];
  readonly acked: string[] = [];
  readonly failures: string[] = [];
  readonly #clients: Promise<void>[] = [];

  private constructor(server: TestServer, device: TestDevice, waiting: string[]) {
    this.#server = server;
    this.#device = device;
    this.#waiting = waiting;
  }

  static async start(server: TestServer): Promise<Load> {
    const fleet = await createFleet(server, { mailbox_mails_max: 65_535 });
    const device = await fleet.createDevice();
    const sent = await Promise.all(Array.from({ length: 300 }, () => device.sendMail('waiting')));
    const load = new Load(
      server,
      device,
      sent.map(({ mailId }) => mailId),
    );
    for (let i = 0; i < 6; i += 1) load.#clients.push(load.#run(() => load.#sendDatapoint()));
    load.#clients.push(load.#run(() => load.#queueMail()));
    load.#clients.push(load.#run(() => load.#ack()));
    await until(() => load.datapoints.length > 100 && load.queued.length > 20 && load.acked.length > 20);
    return load;
  }

  /** Settles when every client has found out that the server is gone. */
  async over(): Promise<void> {
    await Promise.all(this.#clients);
  }

  /** Everything promised is in the log and, after another start, in the mailbox; nothing is there twice. */
  async expectKept(): Promise<TestServer> {
    const stored = (await readRecords(this.#server.report)).map(({ payload }) => payload);
    expect(new Set(stored).size).toBe(stored.length);
    expect(this.datapoints.filter((payload) => !stored.includes(payload))).toEqual([]);
    const again = await TestServer.start({}, this.#server.report.data);
    const device = this.#device.on(again);
    const mails = new Set<string>();
    for (let after: string | null = ''; after !== null; ) {
      const { body }: { body: { items: { mail_id: string }[]; next: string | null } } = await again.admin(
        'GET',
        `/fleets/${device.fleetId}/devices/${device.deviceId}/mail?limit=1000${after && `&after=${after}`}`,
      );
      for (const { mail_id } of body.items) mails.add(mail_id);
      after = body.next;
    }
    expect(this.queued.filter((id) => !mails.has(id))).toEqual([]);
    expect(this.acked.filter((id) => mails.has(id))).toEqual([]);
    expect((await device.next()).headers.get('x-mailbox-size')).toBe(String(mails.size));
    return again;
  }

  async #run(request: () => Promise<{ status: number }>): Promise<void> {
    try {
      for (;;) {
        const { status } = await request();
        if (status >= 300) this.failures.push(String(status));
      }
    } catch {
      // The server is gone.
    }
  }

  async #sendDatapoint(): Promise<{ status: number }> {
    const payload = `{"id":"${uuidv7()}"}`;
    const answer = await this.#device.request('POST', '/v1/datapoint/reading', payload);
    if (answer.status === 201) this.datapoints.push(payload);
    return answer;
  }

  async #queueMail(): Promise<{ status: number }> {
    const answer = await this.#device.sendMail('new');
    if (answer.status === 201) this.queued.push(answer.mailId);
    return answer;
  }

  async #ack(): Promise<{ status: number }> {
    const mailId = this.#waiting.pop();
    if (mailId === undefined) throw new Error('nothing left to acknowledge');
    const answer = await this.#device.settle('ack', mailId);
    if (answer.status === 200) this.acked.push(mailId);
    return answer;
  }
}

async function isRefused(server: TestServer): Promise<boolean> {
  const socket = connectTcp(server.port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED';
  } finally {
    socket.destroy();
  }
}

async function openStream(device: TestDevice): Promise<RawConnection> {
  const connection = await RawConnection.open(device.server);
  const headers = { ...device.credentials, Accept: 'text/event-stream' };
  connection.write(requestText('GET', '/v1/events', headers));
  await until(() => connection.text.includes('event: connected'));
  return connection;
}

async function trickle(connection: RawConnection, text: string, seconds: number): Promise<void> {
  for (const byte of text) {
    await pause((seconds * 1_000) / text.length);
    if (connection.isClosed) return;
    connection.write(byte);
  }
}

/** Signals the process; answers its exit status and how long it took to end. */
async function end(
  server: TestServer,
  signal: NodeJS.Signals,
): Promise<{ status: number | null; seconds: number }> {
  const startMs = performance.now();
  const exited = once(server.process, 'exit');
  server.process.kill(signal);
  const [status] = await exited;
  const seconds = (performance.now() - startMs) / 1_000;
  await server.ended();
  return { status, seconds };
}

describe('the end of a server under load', () => {
  const folder = temporaryFolder();
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start({}, folder);
  });

  afterAll(async () => {
    expect(await server.stop()).toBe(0);
    rmSync(folder, { recursive: true });
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    '%s: what was promised is kept, what is under way is finished',
    async (signal) => {
      const load = await Load.start(server);
      const fleet = await createFleet(server);
      const device = await fleet.createDevice();
      const streams = await Promise.all(
        Array.from({ length: 6 }, async () => openStream(await fleet.createDevice())),
      );
      const idle = await RawConnection.open(server);
      const slow = await RawConnection.open(server);
      const payload = `{"id":"${uuidv7()}"}`;
      slow.write(datapointHead(device, { 'Content-Length': String(payload.length) }));
      const trickling = trickle(slow, payload, 3);

      const ending = end(server, signal);
      await until(() => isRefused(server));
      expect([server.isRunning, slow.isClosed]).toEqual([true, false]);
      for (const stream of streams) {
        await stream.closed();
        // The last chunk: an end, and no interruption.
        expect(stream.text.endsWith('0\r\n\r\n')).toBe(true);
      }
      await trickling;
      expect((await slow.answer()).status).toBe(201);
      load.datapoints.push(payload);
      const { status, seconds } = await ending;
      expect([status, seconds < exitSecondsMax]).toEqual([0, true]);
      await Promise.all([load.over(), idle.closed(1_000), slow.closed(1_000)]);
      // A 503 would be an honest answer; anything else would not.
      expect(load.failures.filter((failure) => failure !== '503')).toEqual([]);
      server = await load.expectKept();
    },
  );

  it('kill -9: what was promised is kept, and the next start works', async () => {
    const load = await Load.start(server);
    await server.kill();
    await load.over();
    server = await load.expectKept();
  });
});

it.concurrent('a body that goes on and on, and more signals, delay the end by no more than 15 s', async () => {
  const server = await TestServer.start();
  const device = await (await createFleet(server)).createDevice();
  await openStream(device);
  expect(await openStreams(server)).toBe(1);
  const slow = await RawConnection.open(server);
  slow.write(datapointHead(device, { 'Content-Length': '100' }));
  const trickling = trickle(slow, '{"a":1}'.padEnd(100), 25);
  const ending = end(server, 'SIGTERM');
  await until(() => isRefused(server));
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGTERM'] as const) server.process.kill(signal);
  const { status, seconds } = await ending;
  expect(status).toBe(0);
  expect(seconds).toBeGreaterThan(8);
  expect(seconds).toBeLessThan(exitSecondsMax);
  await trickling;
  expect(await readRecords(server.report)).toEqual([]);
  await server[Symbol.asyncDispose]();
});

it.concurrent('an idle server with connections and streams that nobody reads is gone in seconds', async () => {
  // The longest there is, so that on a slow machine too the end tells whether somebody was waited for.
  const shutdownSeconds = 12;
  const server = await TestServer.start({ shutdownSeconds });
  const device = await (await createFleet(server)).createDevice();
  const deaf = await openStream(device);
  deaf.socket.pause();
  const connections = await Promise.all(Array.from({ length: 20 }, () => RawConnection.open(server)));
  connections[0]?.write('POST /v1/heart');
  const half = connectTcp(server.port, '127.0.0.1').on('error', () => {});
  await once(half, 'connect');
  const { status, seconds } = await end(server, 'SIGTERM');
  expect(status).toBe(0);
  expect(seconds, server.stderr).toBeLessThan(shutdownSeconds);
  await server[Symbol.asyncDispose]();
});

it.concurrent('killed at any moment of its first start, it starts the next time', async () => {
  const folder = temporaryFolder();
  for (const delayMs of [100, 250, 400, 550, 700, 1_000]) {
    const args = [mainFile, 'serve', '--no-parent', '--data', folder, '--listen', '127.0.0.1:0'];
    const child = spawn(process.execPath, args, {
      env: { ...process.env, FLEETPOST_ADMIN: '127.0.0.1:0', FLEETPOST_SHARDS: String(shards) },
      stdio: 'ignore',
    });
    const exited = once(child, 'exit');
    await Promise.race([exited, pause(delayMs)]);
    child.kill('SIGKILL');
    expect(await exited).toEqual([null, 'SIGKILL']);
  }
  const server = await TestServer.start({}, folder);
  const device = await (await createFleet(server)).createDevice();
  const agent = oneConnection(server);
  expect((await device.request('POST', '/v1/heartbeat', undefined, {}, agent)).status).toBe(201);
  await agent.destroy();
  expect(await server.stop()).toBe(0);
  rmSync(folder, { recursive: true });
});
