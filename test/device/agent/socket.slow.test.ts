import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { HostileRelay } from '../../clients/hostile-relay.ts';
import { createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { pause, until } from '../../harness/server/vitals.ts';
import { AgentProcess, type LocalAnswer, type LocalEvents } from './agent-process.ts';

let server: TestServer;
let relay: HostileRelay;
let fleet: TestFleet;
let device: TestDevice;

beforeAll(async () => {
  server = await TestServer.start();
  relay = await HostileRelay.open(server.port);
  fleet = await createFleet(server);
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});
beforeEach(async () => {
  relay.weather = 'pass';
  device = await fleet.createDevice();
});

const newAgent = (more: NodeJS.ProcessEnv = {}): AgentProcess =>
  new AgentProcess({
    FOSTROM_FLEET_ID: device.fleetId,
    FOSTROM_DEVICE_ID: device.deviceId,
    FOSTROM_DEVICE_SECRET: device.secret,
    FLEETPOST_URL: `https://127.0.0.1:${relay.port}`,
    FLEETPOST_CA: server.report.cert_file,
    ...more,
  });

/** An agent whose server answers it. */
async function connected(...flags: string[]): Promise<AgentProcess> {
  const agent = await newAgent().run(...flags);
  await until(async () => (await agent.ask('GET', '/')).body === '{"connected":true}');
  return agent;
}

/** Payloads that the device has sent, byte for byte. */
async function payloads(): Promise<string[]> {
  const url = `${server.report.admin_url}/admin/v1/fleets/${device.fleetId}/records?device=${device.deviceId}`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${server.token}` } });
  const lines = (await answer.text())
    .split('\n')
    .filter((line) => line !== '' && !line.includes('"receipt"'));
  return lines.map((line) => /"payload":(.*),"cursor"/.exec(line)?.[1] ?? line);
}

it('GET / says whether there is a connection, and why not', async () => {
  await using agent = await connected();
  const { status, headers } = await agent.raw('GET / HTTP/1.1\r\n\r\n');
  expect([status, headers.Connection, headers['Content-Type']]).toEqual([200, 'close', 'application/json']);
  relay.weather = 'refuse';
  await until(async () => (await agent.ask('GET', '/')).body.includes('connect_failed'));
  const { body } = await agent.ask('GET', '/');
  expect(JSON.parse(body)).toEqual({
    connected: false,
    error: 'connect_failed',
    msg: expect.any(String),
    reconnecting_in: expect.any(Number),
  });
  await using refused = await newAgent({ FOSTROM_DEVICE_SECRET: `FOS-${'x'.repeat(32)}` }).run();
  relay.weather = 'pass';
  await until(async () => (await refused.ask('GET', '/')).body.includes('"error":"unauthorized"'));
  expect((await refused.ask('GET', '/mailbox/next')).status).toBe(401);
});

it('DELETE /stop-agent ends the agent, and leaves nothing', async () => {
  await using agent = await connected();
  const { status, body } = await agent.raw('DELETE /stop-agent HTTP/1.1\r\n\r\n');
  expect([status, body]).toEqual([200, '{"ok":true}']);
  await until(() =>
    agent.ask('GET', '/').then(
      () => false,
      () => true,
    ),
  );
  expect(agent.command('status')).toEqual({ status: 1, text: expect.stringMatching(/^not_running: /) });
});

it('a request says who it is of: nobody 400, somebody else 401, except for GET / and stop', async () => {
  await using agent = await connected();
  const noFleet = await agent.ask('GET', '/mailbox/next', undefined, { 'X-Fleet-ID': '' });
  const other = await agent.ask('GET', '/mailbox/next', undefined, { 'X-Device-ID': 'OTHER00001' });
  const events = await agent.ask('GET', '/events', undefined, { 'X-Fleet-ID': 'OTHER001' });
  expect([noFleet.status, other.status, events.status]).toEqual([400, 401, 401]);
  expect(JSON.parse(noFleet.body)).toEqual({ error: 'missing_credentials', msg: expect.any(String) });
  expect(JSON.parse(other.body).error).toBe('unauthorized');
});

it('an empty mailbox is 200, and its headers say so', async () => {
  await using agent = await connected();
  for (const method of ['GET', 'HEAD']) {
    const { status, headers } = await agent.ask(method, '/mailbox/next');
    expect([status, headers['X-Mailbox-Size'], headers['X-Mailbox-Empty']]).toEqual([200, '0', 'true']);
  }
});

it('a mail comes with its headers and its payload byte for byte, and goes on ack, reject and requeue', async () => {
  await using agent = await connected();
  const payload = '{"big": 12345678901234567890, "é":1.0}';
  const { mailId } = await device.sendMail('first', payload);
  await device.sendMail('second');
  const head = await agent.ask('HEAD', '/mailbox/next');
  expect([head.headers['X-Mail-Name'], head.body]).toEqual(['first', '']);
  const got = await agent.ask('GET', '/mailbox/next');
  expect(got.body).toBe(payload);
  expect(got.headers).toMatchObject({
    'X-Mailbox-Size': '2',
    'X-Mailbox-Empty': 'false',
    'X-Mail-ID': mailId,
    'X-Mail-Name': 'first',
    'X-Mail-Has-Payload': 'true',
    Connection: 'close',
  });
  const requeued = await agent.ask('PUT', `/mailbox/requeue/${mailId}`, 'null');
  expect([requeued.status, requeued.body]).toEqual([200, '{"ok":true,"mail_available":true}']);
  expect(requeued.headers['X-Mail-Available']).toBe('true');
  const next = await agent.ask('GET', '/mailbox/next');
  expect([next.headers['X-Mail-Name'], next.headers['X-Mail-Has-Payload']]).toEqual(['second', 'false']);
  const ack = await agent.ask('PUT', `/mailbox/ack/${next.headers['X-Mail-ID']}`);
  expect(ack.headers['X-Mail-Available']).toBe('true');
  const reject = await agent.ask('PUT', `/mailbox/reject/${mailId}`, 'null');
  expect([reject.body, reject.headers['X-Mail-Available']]).toEqual([
    '{"ok":true,"mail_available":false}',
    'false',
  ]);
  expect((await agent.ask('PUT', `/mailbox/ack/${mailId}`)).status).toBe(403);
  expect((await agent.ask('PUT', '/mailbox/ack/01a20702-90e0-77e5-b2dc-b4fc00000099')).status).toBe(404);
});

it('datapoints and messages go on byte for byte, and what is refused says why', async () => {
  await using agent = await connected();
  const odd = '{ "big": 12345678901234567890, "n": 1.50 }';
  expect(await agent.ask('POST', '/pulse/datapoint/reading', odd)).toMatchObject({
    status: 200,
    body: '{"ok":true}',
  });
  for (const body of [undefined, 'null', '{}']) {
    expect((await agent.ask('POST', '/pulse/msg/note', body)).status).toBe(200);
  }
  expect((await payloads())[0]).toBe(odd);
  expect(await payloads()).toHaveLength(4);
  await fleet.putSchema('datapoint', 'strict', { type: 'object', required: ['n'] });
  const mismatch = await agent.ask('POST', '/pulse/datapoint/strict', '{"m":1}');
  expect(mismatch.status).toBe(400);
  expect(JSON.parse(mismatch.body)).toEqual({ error: 'schema_mismatch', msg: expect.stringContaining('n') });
  expect((await agent.ask('POST', '/pulse/datapoint/nosuch', '{"m":1}')).status).toBe(404);
  expect((await agent.ask('POST', '/pulse/datapoint/reading', '{')).status).toBe(400);
});

it('what is no request of this socket is 400, 403, 404, 408 or 505, with its atom, and the connection ends', async () => {
  await using agent = await connected();
  const large = await agent.ask('POST', '/pulse/datapoint/reading', undefined, { 'Content-Length': '65537' });
  const chunked = await agent.ask('POST', '/pulse/msg/note', undefined, { 'Transfer-Encoding': 'chunked' });
  const old = await agent.raw('GET / HTTP/1.0\r\n\r\n');
  const rubbish = await agent.raw('rubbish\r\n\r\n');
  const route = await agent.ask('GET', '/nosuch');
  const method = await agent.ask('PUT', '/mailbox/next', 'null');
  const found = [large, chunked, old, rubbish, route, method];
  expect(found.map(({ status }) => status)).toEqual([403, 400, 505, 400, 404, 404]);
  expect(found.map(({ body }) => JSON.parse(body).error)).toEqual([
    'request_too_large',
    'bad_request',
    'version_not_supported',
    'bad_request',
    'route_not_found',
    'route_not_found',
  ]);
  expect(found.map(({ headers }) => headers.Connection)).toEqual(found.map(() => 'close'));
});

it('a body of 64 KiB is taken', async () => {
  await using agent = await connected();
  const body = JSON.stringify({ text: 'x'.repeat(65_536 - 11) });
  expect(Buffer.byteLength(body)).toBe(65_536);
  expect((await agent.ask('POST', '/pulse/datapoint/reading', body)).status).toBe(200);
});

it('events: connected, then one new_mail; later disconnected with its reason, and connected again', async () => {
  await using agent = await connected();
  using events = await agent.listen();
  await events.come('connected', 'new_mail');
  expect(events.text).toContain('Content-Type: text/event-stream');
  expect(events.text).toContain('event: new_mail\n\n');
  relay.weather = 'refuse';
  await events.come('connected', 'new_mail', 'disconnected');
  expect(events.dataOf('disconnected')).toEqual({
    error: expect.stringMatching(/^connect_failed: ./),
    reconnecting_in_ms: expect.any(Number),
  });
  using late = await agent.listen();
  await late.come('disconnected');
  relay.weather = 'pass';
  await events.come('connected', 'new_mail', 'disconnected', 'connected');
  await late.come('disconnected', 'connected');
});

it('no new_mail while a fetched mail is unsettled, and one for what came meanwhile', async () => {
  await using agent = await connected();
  using events = await agent.listen();
  await events.come('connected', 'new_mail');
  expect((await agent.ask('GET', '/mailbox/next')).headers['X-Mailbox-Empty']).toBe('true');
  const { mailId } = await device.sendMail('one');
  await events.come('connected', 'new_mail', 'new_mail');
  // Before it is fetched, and while it is in hand.
  const second = await device.sendMail('two');
  expect((await agent.ask('GET', '/mailbox/next')).headers['X-Mail-ID']).toBe(mailId);
  await device.sendMail('three');
  // Long enough for what should not come.
  await pause(500);
  expect(events.names).toHaveLength(3);
  const settled = await agent.ask('PUT', `/mailbox/ack/${mailId}`, 'null');
  expect(settled.headers['X-Mail-Available']).toBe('true');
  // Who died with a mail in hand is told of it when it listens again.
  await agent.ask('GET', '/mailbox/next');
  events[Symbol.dispose]();
  await until(async () => {
    using again = await agent.listen();
    await again.come('connected');
    await pause(100);
    return again.names.includes('new_mail');
  });
  expect((await agent.ask('GET', '/mailbox/next')).headers['X-Mail-ID']).toBe(second.mailId);
});

it('silence is broken by keep_alive with the time in milliseconds', async () => {
  await using agent = await connected();
  using events = await agent.listen();
  await until(() => events.names.includes('keep_alive'));
  expect(events.text).toMatch(/event: keep_alive\ndata: \d{13}\n\n/);
});

/** An agent whose program has taken the first of two mails. */
async function withMailInHand(
  query = '',
): Promise<{ agent: AgentProcess; events: LocalEvents; ids: string[] }> {
  const agent = await connected();
  const ids = [(await device.sendMail('one', '{}', query)).mailId, (await device.sendMail('two')).mailId];
  const events = await agent.listen();
  await events.come('connected', 'new_mail');
  expect((await agent.ask('GET', '/mailbox/next')).headers['X-Mail-ID']).toBe(ids[0]);
  return { agent, events, ids };
}

const errorOf = ({ status, body }: LocalAnswer): unknown[] => [status, JSON.parse(body).error];

it('a mail that was withdrawn while it was in hand is an error, and the next is announced', async () => {
  const { agent, events, ids } = await withMailInHand();
  await using _agent = agent;
  using _events = events;
  expect((await server.admin('DELETE', `${device.adminPath}/mail/${ids[0]}`)).status).toBe(200);
  const before = events.names.length;
  expect(errorOf(await agent.ask('PUT', `/mailbox/ack/${ids[0]}`))).toEqual([403, 'mail_already_settled']);
  // Their handler has failed: so the SDKs reject it.
  expect(errorOf(await agent.ask('PUT', `/mailbox/reject/${ids[0]}`))).toEqual([403, 'mail_already_settled']);
  await until(() => events.names[before] === 'new_mail');
  expect((await agent.ask('GET', '/mailbox/next')).headers['X-Mail-ID']).toBe(ids[1]);
});

it('nor does one that has expired in hand end the mail', async () => {
  const { agent, events, ids } = await withMailInHand('?ttl_seconds=1');
  await using _agent = agent;
  using _events = events;
  await until(async () => (await device.next()).headers.get('x-mail-id') === ids[1]);
  const before = events.names.length;
  const { status } = await agent.ask('PUT', `/mailbox/ack/${ids[0]}`);
  expect([403, 404]).toContain(status);
  await until(() => events.names[before] === 'new_mail');
  expect((await agent.ask('GET', '/mailbox/next')).headers['X-Mail-ID']).toBe(ids[1]);
});

it('what could not be settled or fetched for want of a network is announced again with it', async () => {
  const { agent, events, ids } = await withMailInHand();
  await using _agent = agent;
  using _events = events;
  const offline = async (method: string, path: string): Promise<void> => {
    relay.weather = 'refuse';
    await until(() => events.names.at(-1) === 'disconnected');
    expect(errorOf(await agent.ask(method, path))).toEqual([403, 'not_connected']);
    relay.weather = 'pass';
    await until(() => events.names.slice(-2).join() === 'connected,new_mail');
  };
  await offline('PUT', `/mailbox/ack/${ids[0]}`);
  expect((await agent.ask('GET', '/mailbox/next')).headers['X-Mail-ID']).toBe(ids[0]);
  const { headers } = await agent.ask('PUT', `/mailbox/ack/${ids[0]}`);
  expect(headers['X-Mail-Available']).toBe('true');
  await offline('GET', '/mailbox/next');
  expect((await agent.ask('GET', '/mailbox/next')).headers['X-Mail-ID']).toBe(ids[1]);
});

it('a mail whose settling was refused for now is announced again', async () => {
  device = await (await createFleet(server, { device_requests_per_second_max: 10 })).createDevice();
  const { agent, events, ids } = await withMailInHand();
  await using _agent = agent;
  using _events = events;
  let [status, mail, before] = [200, ids[0], 0];
  while (status === 200) {
    const flood = Array.from({ length: 40 }, () => device.heartbeat());
    await Promise.race(flood);
    before = events.names.length;
    ({ status } = await agent.ask('PUT', `/mailbox/ack/${mail}`));
    await Promise.all(flood);
    if (status === 200) {
      await device.sendMail();
      // Retries until the fetch is not refused, either.
      await until(async () => {
        mail = (await agent.ask('GET', '/mailbox/next')).headers['X-Mail-ID'];
        return mail !== undefined;
      });
    }
  }
  expect(status).toBe(408);
  await until(() => events.names.slice(before).includes('new_mail'));
});

it('mails that are all put off come ever more slowly', async () => {
  await using agent = await connected();
  const ids = [(await device.sendMail()).mailId, (await device.sendMail()).mailId];
  using events = await agent.listen();
  let [announced, calls] = [0, 0];
  // As an SDK does: it fetches when it is told to, by an event or by the answer to a settling.
  for (const endMs = performance.now() + 4_000; performance.now() < endMs; await pause(10)) {
    const announcements = events.names.filter((name) => name === 'new_mail').length;
    if (announcements === announced) continue;
    announced = announcements;
    for (let isMore = true; isMore; calls += 1) {
      const { headers } = await agent.ask('GET', '/mailbox/next');
      const settled = await agent.ask('PUT', `/mailbox/requeue/${headers['X-Mail-ID']}`);
      isMore = settled.headers['X-Mail-Available'] === 'true';
      // Each of both once, before the first pause.
      if (calls < 2) expect([headers['X-Mail-ID'], isMore]).toEqual([ids[calls], calls === 0]);
    }
  }
  expect(calls).toBeLessThanOrEqual(14);
});

it('offline: 403 not_connected; with a queue 200 and X-Queued, and it is sent later, once, in order', async () => {
  await using plain = await connected();
  relay.weather = 'refuse';
  await until(async () => (await plain.ask('GET', '/')).body.includes('connect_failed'));
  for (const [method, path, body] of [
    ['POST', '/pulse/datapoint/reading', '{"n":1}'],
    ['GET', '/mailbox/next', undefined],
  ] as const) {
    const { status, body: text } = await plain.ask(method, path, body);
    expect([status, JSON.parse(text).error]).toEqual([403, 'not_connected']);
  }
  const many = await Promise.all(Array.from({ length: 12 }, () => plain.ask('GET', '/mailbox/next')));
  expect(many.map(({ status }) => status)).toEqual(many.map(() => 403));
  expect(plain.said).not.toContain('Warning');
  await plain[Symbol.asyncDispose]();

  relay.weather = 'pass';
  const queue = join(temporaryFolder(), 'queue');
  await using agent = await connected('--queue', queue);
  relay.weather = 'refuse';
  await until(async () => (await agent.ask('GET', '/')).body.includes('connect_failed'));
  for (let n = 0; n < 3; n += 1) {
    const { status, headers } = await agent.ask('POST', '/pulse/datapoint/reading', `{"n": ${n}}`);
    expect([status, headers['X-Queued']]).toEqual([200, 'true']);
  }
  expect((await agent.ask('POST', '/pulse/datapoint/reading', '{}')).status).toBe(400);
  await agent.kill();
  // All that was answered is there after a kill -9; the socket and the lock that it left are in nobody's way.
  await agent.run('--queue', queue);
  expect((await agent.ask('POST', '/v1/msg/note', '{"n": 3}')).headers['X-Queued']).toBe('true');
  relay.weather = 'pass';
  await until(async () => (await payloads()).length >= 4, 70_000);
  expect(await payloads()).toEqual([0, 1, 2, 3].map((n) => `{"n": ${n}}`));
});

it('answers that are lost double nothing', async () => {
  await using agent = await connected('--queue', join(temporaryFolder(), 'queue'));
  relay.weather = 'lose';
  for (let n = 0; n < 20; n += 1) {
    expect((await agent.ask('POST', '/pulse/datapoint/reading', `{"n":${n}}`)).status).toBe(200);
  }
  relay.weather = 'pass';
  await until(async () => (await payloads()).length >= 20, 70_000);
  // Long enough for one that comes twice.
  await pause(500);
  expect((await payloads()).sort()).toEqual(Array.from({ length: 20 }, (_, n) => `{"n":${n}}`).sort());
});

it('the device API is on the socket as it is, for a shell', async () => {
  await using agent = await connected();
  const ask = (method: string, path: string): ReturnType<AgentProcess['raw']> =>
    agent.raw(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  expect(JSON.parse((await ask('GET', '/v1')).body).device.device_id).toBe(device.deviceId);
  expect((await ask('GET', '/v1/mailbox/next')).status).toBe(204);
  const { mailId } = await device.sendMail('note', '{"n":1}');
  const { status, headers, body } = await ask('GET', '/v1/mailbox/next');
  expect([status, headers['x-mail-id'], body]).toEqual([200, mailId, '{"n":1}']);
  expect((await ask('PUT', `/v1/mailbox/ack/${mailId}`)).status).toBe(200);
  const sent = await agent.ask('POST', '/v1/datapoint/reading', '{"n":1}', {
    'Content-Type': 'application/json',
  });
  expect([sent.status, sent.body]).toEqual([201, '{"ok":true}']);
  expect((await ask('GET', '/v1/nosuch')).status).toBe(404);
  const socket = await agent.open();
  let text = '';
  socket.on('data', (part) => {
    text += part;
  });
  socket.write('GET /v1/events HTTP/1.1\r\n\r\n');
  await until(() => text.includes('event: connected'));
  socket.destroy();
});
