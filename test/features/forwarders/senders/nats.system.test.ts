import { credsAuthenticator } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../../../harness/devices/device.ts';
import { makeCertificate } from '../../../harness/server/certificate.ts';
import { TestServer } from '../../../harness/server/server.ts';
import { NatsServer, type NatsSettings } from './nats.ts';
import { trustUser } from './nats-credentials.ts';

const patience = { timeout: 60_000, interval: 50 };
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
  await vi.waitFor(async () => expect(await lastError()).toContain('No JetStream stream'), patience);
  await nats.addStream('readings', 't.>');
  await vi.waitFor(
    async () => expect((await ask('GET', '/bus')).body.delivered).toBeGreaterThan(0),
    patience,
  );

  const sending = send(6, 40);
  await nats.kill();
  await vi.waitFor(async () => expect(await lastError()).toContain('unreachable'), patience);
  await nats.run();
  await sending;
  await vi.waitFor(async () => {
    expect((await ask('GET', '/bus')).body).toMatchObject({ state: 'running', behind: 0, delivered: 160 });
  }, patience);

  // While NATS answered that there is no stream, a record may have been sent once more, to see whether it takes that one:
  // under an id of its own, of three parts. A slow machine gets as far.
  const kept = (await nats.messages('readings')).filter(({ id }) => id?.split('.').length === 2);
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
});

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
});

const lastErrorOf = async (name: string) => (await ask('GET', `/${name}`)).body.last_error?.msg;

it('by TLS it gives records and credentials to the server alone that the certificate is of', async () => {
  const [own, client, stranger, byAddress] = await Promise.all([
    makeCertificate('nats'),
    makeCertificate('forwarder'),
    makeCertificate('stranger'),
    makeCertificate('nats', '127.0.0.1'),
  ]);
  const user = { user: 'fleetpost', password: 'hidden-password' };
  const settings = (shown: { cert: string; key: string }): NatsSettings => ({
    lines: [
      'tls { cert_file: "FOLDER/cert", key_file: "FOLDER/key", ca_file: "FOLDER/client", verify: true }',
      'authorization { users: [',
      `  { user: ${user.user}, password: ${user.password}, permissions: { publish: [ "w.>", "$JS.API.>" ] } }`,
      '] }',
    ],
    files: { cert: shown.cert, key: shown.key, client: client.cert },
    access: { user: user.user, pass: user.password, tls: { ...client, ca: shown.cert } },
  });
  await using secure = await NatsServer.start(settings(own));
  await using numbered = await NatsServer.start(settings(byAddress));
  await secure.addStream('readings', 'w.>');

  const known = { servers: [`tls://localhost:${secure.port}`], tls: { ca: own.cert, ...client } };
  const refusals: [change: object, reason: string][] = [
    // Nobody whom this machine trusts has signed it.
    [{ tls: { ...client } }, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    [{ tls: { ...client, ca: stranger.cert } }, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    [{ servers: [`tls://127.0.0.1:${secure.port}`] }, 'ERR_TLS_CERT_ALTNAME_INVALID'],
    [{ tls: { ca: own.cert } }, 'is unreachable'],
    // Asked for TLS by name or by a file, it never speaks without.
    [{ servers: [`tls://localhost:${nats.port}`] }, 'is unreachable'],
    [{ servers: [`nats://localhost:${nats.port}`] }, 'is unreachable'],
    [{ credentials: { ...user, password: 'wrong' } }, 'credentials'],
    [{ subject: 'elsewhere.{kind}' }, 'publish to this subject'],
  ];
  await send(51, 52);
  const to = { type: 'nats', subject: 'w.{kind}', timeout_seconds: 2, credentials: user, start: 'earliest' };
  for (const [index, [change, reason]] of refusals.entries()) {
    const made = await ask('PUT', '/refused', { ...to, ...known, ...change });
    expect(made.status).toBe(201);
    await vi.waitFor(
      async () => expect(await lastErrorOf('refused'), `refusal ${index}`).toContain(reason),
      patience,
    );
    expect((await ask('DELETE', '/refused')).status).toBe(204);
  }
  expect(await secure.messages('readings')).toEqual([]);

  // The first of them that can be had.
  const servers = ['tls://localhost:1', ...known.servers];
  await ask('PUT', '/secure', { ...to, ...known, servers });
  await numbered.addStream('readings', 'w.>');
  const byNumber = {
    servers: [`tls://127.0.0.1:${numbered.port}`],
    tls: { ca: byAddress.cert, ...client },
  };
  await ask('PUT', '/numbered', { ...to, ...byNumber });
  for (const [name, server] of [
    ['secure', secure],
    ['numbered', numbered],
  ] as const) {
    await vi.waitFor(
      async () =>
        expect((await ask('GET', `/${name}`)).body).toMatchObject({
          state: 'running',
          behind: 0,
          credentials: 'user',
          tls: ['ca', 'cert', 'key'],
        }),
      patience,
    );
    const kept = await server.messages('readings');
    expect(new Set(kept.map(({ json }) => json.record_id)).size).toBe(kept.length);
    expect(kept.filter(({ json }) => json.payload.n > 50)).toHaveLength(8);
  }
  const told = JSON.stringify((await ask('GET', '')).body) + server.stderr;
  for (const secret of [user.password, 'PRIVATE KEY']) expect(told).not.toContain(secret);
});

it('it is let in by the credentials file of a user, and by that of no other', async () => {
  const trusted = trustUser();
  const access = { authenticator: credsAuthenticator(new TextEncoder().encode(trusted.creds)) };
  await using guarded = await NatsServer.start({ lines: trusted.lines, files: {}, access });
  await guarded.addStream('readings', 'c.>');
  const to = { type: 'nats', servers: [guarded.url], subject: 'c.{kind}', timeout_seconds: 2 };
  await ask('PUT', '/signed', { ...to, credentials: { creds: trustUser().creds } });
  await send(61, 62);
  await vi.waitFor(async () => expect(await lastErrorOf('signed')).toContain('credentials'), patience);
  await ask('PUT', '/signed', { ...to, credentials: { creds: trusted.creds } });
  await vi.waitFor(async () => expect(await guarded.messages('readings')).toHaveLength(8), patience);
  expect((await ask('GET', '/signed')).body.credentials).toBe('creds');
  // Credentials that are no such file are reported, and hold up nothing else.
  await ask('PUT', '/signed', { ...to, credentials: { creds: 'no such thing' } });
  await send(63, 63);
  await vi.waitFor(
    async () => expect((await ask('GET', '/signed')).body.state).toBe('backing_off'),
    patience,
  );
  const told = JSON.stringify((await ask('GET', '')).body) + server.stderr;
  for (const line of trusted.creds.split('\n').filter((line) => /^\w{20}/.test(line)))
    expect(told).not.toContain(line);
});

it('a record that no stream takes becomes a dead letter while others are taken, and holds up none of them', async () => {
  await nats.addStream('some', 'some.reading');
  expect((await server.admin('PUT', `/fleets/${fleet.fleetId}/schemas/datapoint/other`, {})).status).toBe(
    201,
  );
  const to = { type: 'nats', servers: [nats.url], credentials: { token: nats.token }, timeout_seconds: 2 };
  await ask('PUT', '/some', { ...to, subject: 'some.{schema}' });
  await send(71, 71);
  const [first] = devices as [TestDevice];
  expect((await first.request('POST', '/v1/datapoint/other', '{"n":0}')).status).toBe(201);
  await send(72, 75);
  await vi.waitFor(async () => {
    expect((await ask('GET', '/some')).body).toMatchObject({ state: 'running', behind: 0, dead_letters: 1 });
  }, patience);
  const { items } = (await ask('GET', '/some/dead-letters')).body;
  expect(items).toMatchObject([{ schema: 'other', reason: 'No JetStream stream accepts this subject.' }]);
  const kept = await nats.messages('some');
  expect(new Set(kept.map(({ json }) => json.record_id)).size).toBe(20);
  // Nothing takes any while the stream is gone: that is no record's fault.
  expect((await ask('DELETE', '/some/dead-letters')).body).toEqual({ dropped: 1 });
  expect((await ask('DELETE', '/some')).status).toBe(204);
  await ask('PUT', '/none', { ...to, subject: 'none.{schema}' });
  await send(76, 76);
  await vi.waitFor(async () => expect((await ask('GET', '/none')).body.failed).toBeGreaterThan(40), patience);
  // Between two attempts, each of which may still be under way.
  await vi.waitFor(async () => {
    const status = { state: 'backing_off', dead_letters: 0, dropped: 0 };
    expect((await ask('GET', '/none')).body).toMatchObject(status);
  }, patience);
  expect((await ask('DELETE', '/none')).status).toBe(204);
});

it('metadata addresses are no target, nor names that have one, unless forwardHosts names them', async () => {
  const servers = [
    'nats://169.254.169.254:4222',
    'nats://2852039166',
    'tls://0xa9fea9fe',
    'nats://[fe80::1]',
  ];
  for (const server of servers) {
    const made = await ask('PUT', '/away', { type: 'nats', servers: [server], subject: 'a' });
    expect(made, server).toMatchObject({ status: 400, body: { error: 'invalid_forwarder' } });
    expect(made.body.msg).toContain('forwardHosts');
  }
  for (const url of [
    'http://169.254.169.254/',
    'http://[fd00:ec2::254]/',
    'http://100.100.100.200/',
    'https://0251.254.43518/',
  ]) {
    const made = await ask('PUT', '/away', { type: 'webhook', url });
    expect(made, url).toMatchObject({ status: 400, body: { error: 'invalid_forwarder' } });
  }
});
