/** Forwarders on a server: delivery, kills, dead letters, secrets, refusals. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { correctionMsMax } from '../../../src/core/clock.ts';
import { consumerTable } from '../../../src/features/consumers/consumer-tables.ts';
import { openControl } from '../../../src/maintenance/environments.ts';
import { Collection } from '../../../src/storage/tables/collection.ts';
import { createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import {
  type Reaction,
  type ReceivedBatch,
  type ReceivedRecord,
  Receiver,
} from '../../harness/features/receiver.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';

const patience = { timeout: 60_000, interval: 50 };
const config = {
  forwardRetryMilliseconds: 20,
  forwardRetrySecondsMax: 1,
  forwardDeadLettersMax: 6,
  forwardersPerFleetMax: 2,
  forwardHosts: 'localhost, *.example.com',
};
const devicesCount = 4;
const folder = temporaryFolder();
let server: TestServer;
let fleet: TestFleet;
let devices: TestDevice[];
let receiver: Receiver;
/** Records sent so far, by device. */
const sent = new Map<string, number>();

beforeAll(async () => {
  server = await TestServer.start(config, folder);
  fleet = await createFleet(server);
  devices = await Promise.all(Array.from({ length: devicesCount }, () => fleet.createDevice()));
});
beforeEach(async () => {
  receiver = await Receiver.start();
});
afterEach(async () => {
  await ask('DELETE', '/hook');
  await receiver.close();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

// biome-ignore lint/suspicious/noExplicitAny: a test asserts what it finds
function ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: any }> {
  return server.admin(method, `/fleets/${fleet.fleetId}/forwarders${path}`, body);
}

async function putHook(more: object = {}): Promise<void> {
  const body = { type: 'webhook', url: receiver.url, tls: { ca: receiver.ca }, timeout_seconds: 1, ...more };
  const { status, body: answer } = await ask('PUT', '/hook', body);
  expect({ status, answer }).toMatchObject({ status: 201 });
  receiver.secret = answer.secret ?? receiver.secret;
}

/** Every device sends so many more, one behind the other: `n` counts them. */
async function send(count: number): Promise<void> {
  await Promise.all(
    devices.map(async (device) => {
      for (let i = 0; i < count; i += 1) {
        const n = (sent.get(device.deviceId) ?? 0) + 1;
        // The number is one that JavaScript would change (D11).
        const body = `{"n":${n},"exact":9007199254740993.10}`;
        const { status } = await device.on(server).request('POST', '/v1/datapoint/reading', body);
        expect(status).toBe(201);
        sent.set(device.deviceId, n);
      }
    }),
  );
}

/** How many of each were sent until now: what comes later begins behind them. */
const marks = (): Map<string, number> => new Map(sent);

/** None since `from` is missing, and each came for the first time behind those that its device sent before it. */
function expectAllInOrder(records: readonly ReceivedRecord[], from: ReadonlyMap<string, number>): void {
  for (const { deviceId } of devices) {
    const seen = new Set<number>();
    for (const { device_id, payload } of records) if (device_id === deviceId) seen.add(payload.n);
    const first = (from.get(deviceId) ?? 0) + 1;
    const wanted = Array.from({ length: (sent.get(deviceId) ?? 0) - first + 1 }, (_, i) => first + i);
    expect([...seen]).toEqual(wanted);
  }
}

async function untilTaken(from: ReadonlyMap<string, number>): Promise<void> {
  const wanted = devices.reduce(
    (sum, { deviceId }) => sum + (sent.get(deviceId) ?? 0) - (from.get(deviceId) ?? 0),
    0,
  );
  await vi.waitFor(() => {
    expect(new Set(receiver.taken.map(({ record_id }) => record_id)).size).toBe(wanted);
  }, patience);
}

it('every record reaches a webhook, signed, unchanged and in order, whatever the receiver does for a while', async () => {
  const from = marks();
  await putHook();
  const faults: Reaction[] = [
    { status: 500 },
    'cut',
    { status: 429, headers: { 'retry-after': '1' } },
    { status: 302, headers: { location: '/elsewhere' } },
    { status: 404 },
    'hang',
    { status: 503, headers: { 'retry-after': '1000000' } },
    { status: 200, delayMs: 300 },
  ];
  receiver.react = () => faults.shift() ?? { status: 204 };
  await send(10);
  await vi.waitFor(() => expect(faults).toEqual([]), patience);
  // It disappears for a while, in the midst of what is sent.
  const sending = send(10);
  await receiver.close();
  await vi.waitFor(async () => expect((await ask('GET', '/hook')).body.state).toBe('backing_off'), patience);
  expect((await ask('GET', '/hook')).body.last_error.msg).toMatch(/^The receiver is unreachable \(\w+\)\.$/);
  await receiver.open();
  await sending;
  await untilTaken(from);

  expectAllInOrder(receiver.taken, from);
  expect(receiver.badSignatures).toEqual([]);
  expect(receiver.batches.every(({ text }) => text.includes('"exact":9007199254740993.10}'))).toBe(true);
  // A batch that comes again is the same one: a receiver can tell it by its id.
  expectDoublesToBeBatches(receiver.batches);
  await vi.waitFor(async () => {
    expect((await ask('GET', '/hook')).body).toMatchObject({ state: 'running', behind: 0, dead_letters: 0 });
  }, patience);
});

/** Expects records that came more than once to have come in a batch of the same id. */
function expectDoublesToBeBatches(batches: readonly ReceivedBatch[]): void {
  const batchOf = new Map<string, string>();
  for (const { id, records } of batches) {
    for (const { record_id } of records) {
      expect(batchOf.get(record_id) ?? id).toBe(id);
      batchOf.set(record_id, id);
    }
  }
}

it('killed in the midst and started again, it goes on without losing any', async () => {
  const from = marks();
  await putHook({ batch_records_max: 5 });
  receiver.react = () => ({ status: 200, delayMs: 20 });
  await send(10);
  await vi.waitFor(() => expect(receiver.taken.length).toBeGreaterThan(0), patience);
  await server.kill();
  server = await TestServer.start(config, folder);
  await send(2);
  await untilTaken(from);
  expectAllInOrder(receiver.taken, from);
  expect(receiver.badSignatures).toEqual([]);
});

it('paused, it keeps its place; a stop gives back what is under way at once', async () => {
  const from = marks();
  await putHook({ timeout_seconds: 60, filter: { kinds: ['datapoint'], schemas: ['reading'] } });
  await ask('PATCH', '/hook', { enabled: false });
  await send(3);
  expect((await ask('GET', '/hook')).body).toMatchObject({ state: 'paused', enabled: false });
  expect(receiver.batches).toEqual([]);
  receiver.react = () => 'hang';
  await ask('PATCH', '/hook', { enabled: true });
  await vi.waitFor(() => expect(receiver.batches.length).toBeGreaterThan(0), patience);
  const sinceMs = performance.now();
  expect(await server.stop()).toBe(0);
  expect(performance.now() - sinceMs).toBeLessThan(20_000);
  receiver.react = () => ({ status: 204 });
  server = await TestServer.start(config, folder);
  await untilTaken(from);
  expectAllInOrder(receiver.taken, from);
});

it('one whose place is not in a backup, since it was made meanwhile, begins where it was made', async () => {
  await send(3);
  // Times count for as much as a clock may be corrected by without a jump.
  await wait(correctionMsMax + 100);
  const from = marks();
  await putHook({ timeout_seconds: 60 });
  receiver.react = () => 'hang';
  await send(2);
  expect(await server.stop()).toBe(0);
  const control = openControl(join(folder, 'control'), { mapBytesMax: 1024 ** 3, diskFreeBytesMin: 0 });
  await control.commit(() => {
    new Collection(control, consumerTable).deletePrefix([]);
  });
  await control.close();
  receiver.react = () => ({ status: 204 });
  server = await TestServer.start(config, folder);
  await untilTaken(from);
  expectAllInOrder(receiver.taken, from);
});

const stateOf = async () => (await ask('GET', '/hook')).body;
const poisoned = (device: TestDevice, ns: (n: number) => boolean) => (record: ReceivedRecord) =>
  record.device_id === device.deviceId && ns(record.payload.n);

it('a record that is refused becomes a dead letter, alone; beyond the share of its device it is dropped and counted', async () => {
  const from = marks();
  const [first] = devices as [TestDevice];
  const isPoisoned = poisoned(first, (n) => n % 2 === 0);
  receiver.react = ({ records }) => ({ status: records.some(isPoisoned) ? 400 : 204 });
  await putHook();
  const before = sent.get(first.deviceId) ?? 0;
  await send(10);
  // Five of them are poisoned, and three are half of all.
  await vi.waitFor(async () => {
    expect(await stateOf()).toMatchObject({
      state: 'running',
      behind: 0,
      dead_letters: 3,
      refused: 3,
      dropped: 2,
      delivered: 35,
    });
  }, patience);
  const list = (await ask('GET', '/hook/dead-letters?limit=2')).body;
  expect(list.items.map(({ device_id }: ReceivedRecord) => device_id)).toEqual([
    first.deviceId,
    first.deviceId,
  ]);
  expect(list.items[0]).toMatchObject({
    kind: 'datapoint',
    schema: 'reading',
    reason: 'The receiver answered with status 400.',
    replayed: false,
  });
  const rest = (await ask('GET', `/hook/dead-letters?after=${list.next}`)).body;
  expect(rest).toMatchObject({ items: [{}], next: null });
  const one = `/hook/dead-letters/${rest.items[0].record_id}`;
  expect((await ask('GET', one)).body.payload.n).toBeGreaterThan(before);
  expect((await ask('DELETE', one)).body).toEqual({ dropped: 1 });
  expect(await ask('GET', one)).toMatchObject({ status: 404, body: { error: 'dead_letter_not_found' } });

  // Refused once more, they stay; mended, all of them are taken.
  expect((await ask('POST', '/hook/dead-letters/replay')).body).toEqual({ replayed: 2 });
  await vi.waitFor(async () => {
    const { items } = (await ask('GET', '/hook/dead-letters')).body;
    expect(items.map(({ replayed }: { replayed: boolean }) => replayed)).toEqual([false, false]);
    expect((await stateOf()).refused).toBe(5);
  }, patience);
  // There is room again for one of it.
  const taken = new Set(receiver.taken.map(({ record_id }) => record_id));
  expect(taken.size).toBe(35);
  await send(2);
  await vi.waitFor(
    async () => expect(await stateOf()).toMatchObject({ dead_letters: 3, refused: 6 }),
    patience,
  );
  receiver.react = () => ({ status: 204 });
  expect((await ask('POST', '/hook/dead-letters/replay')).body).toEqual({ replayed: 3 });
  await vi.waitFor(async () => {
    expect(await stateOf()).toMatchObject({ state: 'running', dead_letters: 0, behind: 0 });
  }, patience);
  const all = [...sent].reduce((sum, [device, count]) => sum + count - (from.get(device) ?? 0), 0);
  expect(new Set(receiver.taken.map(({ record_id }) => record_id)).size).toBe(all - 3);
});

it('of a receiver that refuses all of them none is dropped: it stops, and goes on when there is room', async () => {
  const from = marks();
  await putHook();
  await send(1);
  await untilTaken(from);
  receiver.react = () => ({ status: 422 });
  await send(4);
  await vi.waitFor(async () => {
    expect(await stateOf()).toMatchObject({ state: 'dead_letters_full', dropped: 0 });
  }, patience);
  expect((await stateOf()).dead_letters).toBeGreaterThan(3);
  receiver.react = () => ({ status: 204 });
  await vi.waitFor(async () => {
    await ask('POST', '/hook/dead-letters/replay');
    expect(await stateOf()).toMatchObject({ state: 'running', dead_letters: 0, behind: 0 });
  }, patience);
  // One that found no room is refused already when there is.
  const all = [...sent].reduce((sum, [device, count]) => sum + count - (from.get(device) ?? 0), 0);
  const { dropped } = await stateOf();
  expect(new Set(receiver.taken.map(({ record_id }) => record_id)).size).toBe(all - dropped);
});

it('records that a receiver fails at for ever become dead letters while it takes others, of one device or of several', async () => {
  const from = marks();
  const [first, second] = devices as [TestDevice, TestDevice];
  const start = sent.get(first.deviceId) ?? 0;
  const isPoison = [
    poisoned(first, (n) => n - start === 3 || n - start === 4),
    poisoned(second, (n) => n - (from.get(second.deviceId) ?? 0) === 7),
  ];
  receiver.react = ({ records }) =>
    records.some((record) => isPoison.some((is) => is(record))) ? { status: 500 } : { status: 204 };
  await putHook();
  await send(10);
  await vi.waitFor(async () => {
    expect(await stateOf()).toMatchObject({
      state: 'running',
      behind: 0,
      dead_letters: 3,
      refused: 3,
      dropped: 0,
    });
  }, patience);
  const { items } = (await ask('GET', '/hook/dead-letters')).body;
  expect(items.every(({ reason }: { reason: string }) => reason.endsWith('status 500.'))).toBe(true);
  // All others have come, and of each device in order.
  for (const { deviceId } of devices) {
    const ns = new Set(
      receiver.taken.filter((one) => one.device_id === deviceId).map(({ payload }) => payload.n),
    );
    const base = from.get(deviceId) ?? 0;
    const missing = deviceId === first.deviceId ? [3, 4] : deviceId === second.deviceId ? [7] : [];
    const wanted = Array.from({ length: 10 }, (_, i) => i + 1).filter((n) => !missing.includes(n));
    expect([...ns].map((n) => n - base)).toEqual(wanted);
  }
  // Records of the same device are refused alone too, once anything was taken.
  receiver.react = ({ records }) => ({
    status: records.some(({ device_id, payload }) => device_id === first.deviceId && payload.n % 2 === 1)
      ? 502
      : 204,
  });
  await Promise.all(
    [1, 3].map((n) => first.on(server).request('POST', '/v1/datapoint/reading', `{"n":${n}}`)),
  );
  await vi.waitFor(
    async () => expect(await stateOf()).toMatchObject({ behind: 0, state: 'running' }),
    patience,
  );
  expect((await stateOf()).refused + (await stateOf()).dropped).toBe(5);
  await ask('DELETE', '/hook/dead-letters');
});

it('of a receiver that fails at all of them, or is away, nothing becomes a dead letter', async () => {
  const from = marks();
  await putHook();
  await send(1);
  await untilTaken(from);
  for (const reaction of [{ status: 500 }, { status: 503 }, 'cut'] as const) {
    const count = receiver.batches.length;
    receiver.react = () => reaction;
    await send(5);
    // Far more attempts than it takes to give up a record.
    await vi.waitFor(() => expect(receiver.batches.length).toBeGreaterThan(count + 15), patience);
    // While an attempt is under way it runs.
    await vi.waitFor(async () => expect(await stateOf()).toMatchObject({ state: 'backing_off' }), patience);
    expect(await stateOf()).toMatchObject({ dead_letters: 0, refused: 0, dropped: 0 });
  }
  receiver.react = () => ({ status: 204 });
  await untilTaken(from);
  expectAllInOrder(receiver.taken, from);
});

it('secrets are told once or never, stay with their destination, and can be rotated', async () => {
  const secrets = { authorization: 'Bearer hidden-header' };
  await putHook({ headers: secrets });
  const before = receiver.secret;
  await send(1);
  await vi.waitFor(() => expect(receiver.batches[0]?.headers).toMatchObject(secrets), patience);
  const shown = (await ask('GET', '/hook')).body;
  expect(shown).toMatchObject({ headers: ['authorization'], tls: ['ca'], credentials: null });
  expect(shown).toMatchObject({ secret_since: expect.any(String), old_secret_until: null });
  const elsewhere = { type: 'webhook', url: 'https://other.example.com/' };
  expect(await ask('PUT', '/hook', elsewhere)).toMatchObject({
    status: 400,
    body: { error: 'invalid_forwarder' },
  });
  expect(await ask('PUT', '/hook', { type: 'webhook', url: 'nothing' })).toMatchObject({
    status: 400,
    body: { error: 'invalid_forwarder' },
  });
  const same = (await ask('PUT', '/hook', { type: 'webhook', timeout_seconds: 2 })).body;
  expect(same).toMatchObject({ headers: ['authorization'], timeout_seconds: 2, secret: null });

  const { secret } = (await ask('POST', '/hook/rotate-secret', { grace_seconds: 100 })).body;
  const rotated = (await ask('GET', '/hook')).body;
  expect(Date.parse(rotated.secret_since)).toBeGreaterThan(Date.parse(shown.secret_since));
  expect(Date.parse(rotated.old_secret_until) - Date.parse(rotated.secret_since)).toBe(100_000);
  const count = receiver.batches.length;
  await send(1);
  await vi.waitFor(() => expect(receiver.batches.length).toBeGreaterThan(count), patience);
  const batch = receiver.batches.at(-1) as ReceivedBatch;
  for (const either of [before, secret]) new Webhook(either).verify(batch.text, batch.headers);
  expect(receiver.badSignatures).toEqual([]);
  const { body: hour } = await ask('GET', '/hook/hour');
  expect(hour.delivered.at(-1) + (hour.delivered.at(-2) ?? 0)).toBeGreaterThan(0);
  expect(hour.delivered).toHaveLength(hour.failed.length);

  const told = JSON.stringify([shown, same, (await ask('GET', '')).body]) + server.stderr;
  for (const text of ['hidden-header', before.slice(6), secret.slice(6), 'of the receiver']) {
    expect(told).not.toContain(text);
  }
  const metrics = await (await fetch(`${server.report.admin_url}/metrics`)).text();
  expect(metrics).toMatch(
    /fleetpost_forwarder_records_total\{fleet="\w+",forwarder="hook",outcome="delivered"\} \d+/,
  );
  expect(metrics).not.toContain('hidden-header');
});

it('what cannot be a forwarder is refused in a sentence', async () => {
  const put = async (body: object, name = 'bad'): Promise<string> => {
    const answer = await ask('PUT', `/${name}`, body);
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_forwarder' } });
    return answer.body.msg;
  };
  const hook = { type: 'webhook', url: 'https://localhost/' };
  const nats = { type: 'nats', servers: ['nats://localhost:4222'] };
  expect(await put({ ...hook, url: 'ftp://localhost/' })).toContain('https://');
  expect(await put({ ...hook, url: 'https://user:word@localhost/' })).toContain('user');
  expect(await put({ ...hook, url: 'https://169.254.169.254/' })).toContain('forwardHosts');
  expect(await put({ ...hook, url: 'https://[::ffff:169.254.169.254]/' })).toContain('forwardHosts');
  expect(await put({ ...hook, headers: { 'webhook-id': 'x' } })).toContain('name');
  expect(await put({ ...hook, headers: { 'x-a': 'a\r\nb: c' } })).toContain('printable');
  expect(await put({ ...hook, secret: 'short' })).toContain('whsec_');
  expect(await put({ ...hook, credentials: { token: 'x' } })).toContain('NATS');
  expect(await put({ ...hook, subject: 'a' })).toContain('subject');
  expect(await put({ ...hook, filter: { schemas: [] } })).toContain('schemas');
  expect(await put({ ...nats, subject: 'a.>' })).toContain('subject');
  expect(await put({ ...nats, subject: 'a.{payload}' })).toContain('subject');
  expect(await put({ ...nats, servers: [] })).toContain('servers');
  expect(await put({ ...nats, credentials: { user: 'a' } })).toContain('password');
  expect(await put(hook, 'no%20name')).toContain('name');
  expect(await ask('GET', '/bad')).toMatchObject({ status: 404, body: { error: 'forwarder_not_found' } });
  await ask('PUT', '/one', { ...hook, enabled: false });
  await ask('PUT', '/two', { ...hook, enabled: false });
  expect(await ask('PUT', '/three', hook)).toMatchObject({ status: 409, body: { error: 'limit_reached' } });
  expect((await ask('GET', '')).body.items.map(({ name }: { name: string }) => name)).toEqual(['one', 'two']);
  for (const name of ['one', 'two']) expect((await ask('DELETE', `/${name}`)).status).toBe(204);
});

it('a URL is kept as it is understood, without what is no part of it', async () => {
  const url = 'https://LOCALHOST:443/in\r\nX-Injected: yes\t?a=b c';
  const { status, body } = await ask('PUT', '/odd', { type: 'webhook', url, enabled: false });
  expect([status, body.url]).toEqual([201, 'https://localhost/inX-Injected:%20yes?a=b%20c']);
  expect((await ask('GET', '/odd')).body.url).toBe(body.url);
  const servers = ['nats://localhost:4222/\r\nPUB', 'tls://localhost'];
  const nats = await ask('PUT', '/bus', { type: 'nats', servers, subject: 'a', enabled: false });
  expect(nats.body.servers).toEqual(['nats://localhost:4222/PUB', 'tls://localhost']);
  for (const name of ['odd', 'bus']) await ask('DELETE', `/${name}`);
});
