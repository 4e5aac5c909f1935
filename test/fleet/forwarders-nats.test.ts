import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../harness/device.ts';
import { NatsServer } from '../harness/nats.ts';
import { TestServer } from '../harness/server.ts';

const patience = { timeout: 30_000, interval: 50 };
const config = { forwardRetryMilliseconds: 20, forwardRetrySecondsMax: 1 };
let server: TestServer;
let nats: NatsServer;
let fleet: TestFleet;
let devices: TestDevice[];
beforeAll(async () => {
  [server, nats] = await Promise.all([TestServer.start(config), NatsServer.start()]);
  fleet = await createFleet(server);
  devices = await Promise.all(Array.from({ length: 4 }, () => fleet.createDevice()));
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await nats[Symbol.asyncDispose]();
});

// biome-ignore lint/suspicious/noExplicitAny: a test asserts what it finds
function ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: any }> {
  return server.admin(method, `/fleets/${fleet.fleetId}/forwarders${path}`, body);
}

const put = (more: object) =>
  ask('PUT', '/bus', { type: 'nats', servers: [nats.url], timeout_seconds: 2, ...more });

/** Every device sends these, one behind the other. */
async function send(from: number, to: number): Promise<void> {
  await Promise.all(
    devices.map(async (device) => {
      for (let n = from; n <= to; n += 1) {
        const body = `{"n":${n},"exact":9007199254740993}`;
        expect((await device.request('POST', '/v1/datapoint/reading', body)).status).toBe(201);
      }
    }),
  );
}

it('every record is in the stream once and in order, though NATS says no, is killed, and comes back', async () => {
  const subject = `t.${fleet.fleetId}.{kind}.{schema}.{device_id}`;
  const lastError = async () => (await ask('GET', '/bus')).body.last_error?.msg;
  expect(await put({ subject, credentials: { token: 'wrong' } })).toMatchObject({ status: 201 });
  await send(1, 5);
  await vi.waitFor(async () => expect(await lastError()).toContain('credentials'), patience);
  expect(await put({ subject, credentials: { token: nats.token } })).toMatchObject({ status: 200 });
  await vi.waitFor(async () => expect(await lastError()).toContain('No stream of JetStream'), patience);
  await nats.addStream('readings', 't.>');
  await vi.waitFor(
    async () => expect((await ask('GET', '/bus')).body.delivered).toBeGreaterThan(0),
    patience,
  );

  const sending = send(6, 40);
  await nats.kill();
  await vi.waitFor(async () => expect(await lastError()).toContain('reached'), patience);
  await nats.run();
  await sending;
  await vi.waitFor(async () => {
    expect((await ask('GET', '/bus')).body).toMatchObject({ state: 'running', behind: 0, delivered: 160 });
  }, patience);

  const kept = await nats.messages('readings');
  expect(kept.length).toBe(160);
  expect(new Set(kept.map(({ json }) => json.record_id)).size).toBe(160);
  for (const { deviceId } of devices) {
    const own = kept.filter(({ json }) => json.device_id === deviceId);
    expect(own.map(({ json }) => json.payload.n)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
    expect(new Set(own.map(({ subject }) => subject))).toEqual(
      new Set([`t.${fleet.fleetId}.datapoint.reading.${deviceId}`]),
    );
  }
  expect(kept[0]?.id).toContain(kept[0]?.json.record_id);
  const told = JSON.stringify((await ask('GET', '')).body) + server.stderr;
  expect(told).toContain('"credentials":"token"');
  expect(told).not.toContain(nats.token);
}, 60_000);

it('without JetStream only by choice, it publishes and flushes', async () => {
  const listener = await nats.connect();
  const heard: unknown[] = [];
  listener.subscribe('plain.>', { callback: (_, message) => void heard.push(message.json()) });
  await listener.flush();
  const made = await ask('PUT', '/plain', {
    type: 'nats',
    servers: [nats.url],
    subject: 'plain.{kind}',
    delivery: 'at-most-once',
    credentials: { token: nats.token },
  });
  expect(made).toMatchObject({ status: 201, body: { delivery: 'at-most-once', secret: null } });
  await send(41, 42);
  await vi.waitFor(() => expect(heard.length).toBe(8), patience);
  expect(heard[0]).toMatchObject({ kind: 'datapoint', payload: { n: 41 } });
  await listener.close();
}, 60_000);
