/** Promises of the spec across stops, kills and damage. */

import { hash } from 'node:crypto';
import { uuidv7 } from 'uuidv7';
import { expect, it } from 'vitest';
import { sleep } from '../../src/core/async.ts';
import { deviceKeyOf, generateDeviceSecret } from '../../src/core/identity.ts';
import { decodeDevice, encodeDevice } from '../../src/storage/lmdb/layout/device-record.ts';
import { createFleet, type DeviceAnswer, TestDevice } from '../harness/devices/device.ts';
import { EventStream } from '../harness/devices/event-stream.ts';
import { expectError } from '../harness/devices/routes.ts';
import { databaseOf, TestServer } from '../harness/server/server.ts';
import { eachShard, queryDatabase, readRecords } from '../harness/storage/log.ts';

/**
 * Checks that what was answered is there after a stop and after a kill: each test starts servers of its own, again and
 * again.
 */
interface ListedMail {
  mail_id: string;
  fetch_count: number;
  requeue_count: number;
}

const send = (on: TestDevice, key: string, body = '{"a":1}'): Promise<DeviceAnswer> =>
  on.request('POST', '/v1/datapoint/reading', body, { 'Idempotency-Key': key });

function expectStored({ status, text, headers }: DeviceAnswer): void {
  expect([status, text, headers.get('idempotent-replayed')]).toEqual([201, '{"ok":true}', null]);
}

function expectReplayed({ status, text, headers }: DeviceAnswer): void {
  expect([status, text, headers.get('idempotent-replayed')]).toEqual([201, '{"ok":true}', 'true']);
}

it('section 3 rule 3, D14: mail outlives a restart: its id, order, fetches, requeues and what was settled', async () => {
  await using first = await TestServer.start();
  const to = await (await createFleet(first)).createDevice();
  const ids: string[] = [];
  for (let mail = 0; mail < 4; mail += 1) ids.push((await to.sendMail(`mail-${mail}`)).mailId);
  const [acked = '', requeued = '', third = '', fourth = ''] = ids;
  await to.settle('ack', acked);
  await to.settle('requeue', requeued);
  await to.next();
  await first.stop();
  await using second = await TestServer.start({}, first.report.data);
  const moved = to.on(second);
  expect((await moved.settle('ack', acked)).status).toBe(200);
  expectError(await moved.settle('reject', acked), 409, 'mail_already_settled');
  const { body } = await second.admin<{ items: ListedMail[] }>('GET', `${moved.adminPath}/mail`);
  expect(
    body.items.map(({ mail_id, fetch_count, requeue_count }) => [mail_id, fetch_count, requeue_count]),
  ).toEqual([
    [third, 1, 0],
    [fourth, 0, 0],
    [requeued, 0, 1],
  ]);
});

it.each(['stop', 'kill'] as const)('D18, D19: keys and data outlive a %s', async (end) => {
  await using first = await TestServer.start();
  const on = await (await createFleet(first)).createDevice();
  const key = uuidv7();
  expectStored(await send(on, key));
  await first[end]();
  await using restarted = await TestServer.start({}, first.report.data);
  const moved = on.on(restarted);
  expectReplayed(await send(moved, key));
  expectError(await send(moved, key, '{"a":2}'), 400, 'idempotency_key_reused');
  await restarted.stop();
  expect(await readRecords(first.report)).toHaveLength(1);
});

/** Runs one request after another in each lane until enough are answered; then the server is killed in full flight. */
async function untilKilled<T>(
  server: TestServer,
  lanes: number,
  items: readonly T[],
  enough: number,
  run: (item: T, lane: number) => Promise<void>,
): Promise<Set<T>> {
  const answered = new Set<T>();
  const left = items.values();
  let kill: Promise<void> | undefined;
  const runLane = async (_: unknown, lane: number): Promise<void> => {
    for (const item of left) {
      await run(item, lane);
      answered.add(item);
      if (answered.size >= enough) kill ??= server.kill();
    }
  };
  await Promise.allSettled(Array.from({ length: lanes }, runLane));
  await kill;
  expect(answered.size).toBeGreaterThanOrEqual(enough);
  expect(answered.size).toBeLessThan(items.length);
  return answered;
}

it('D18, D19: killed in full flight, no 201 is lost and a retry stores exactly once', async () => {
  await using first = await TestServer.start();
  const target = await createFleet(first);
  const devices = await Promise.all(Array.from({ length: 12 }, () => target.createDevice()));
  const sends = Array.from({ length: 1_200 }, (_, index) => ({
    key: uuidv7(),
    body: `{"n":${index}}`,
    on: devices[index % devices.length] as TestDevice,
  }));
  const answered = await untilKilled(first, 12, sends, 100, async ({ key, body, on }) =>
    expectStored(await send(on, key, body)),
  );
  await using restarted = await TestServer.start({}, first.report.data);
  for (const one of sends.slice(0, 200)) {
    const answer = await send(one.on.on(restarted), one.key, one.body);
    if (answered.has(one)) expectReplayed(answer);
    else expect(answer.status).toBe(201);
  }
  await restarted.stop();
  const payloads = (await readRecords(first.report)).map(({ payload }) => payload);
  expect(payloads.toSorted()).toEqual(
    sends
      .slice(0, 200)
      .map(({ body }) => body)
      .toSorted(),
  );
});

/** A device that sends its queue in order, each number until it is told that it is stored. */
async function sendQueue(on: TestDevice, storedTo: number, last: number): Promise<number> {
  let to = storedTo;
  // What is not answered is sent again with more behind it; a lost answer makes some come twice.
  while (to < last) {
    const numbers = Array.from({ length: Math.min(7, last - to) }, (_, index) => to + 1 + index);
    const records = numbers.map((n) => ({ kind: 'datapoint', schema: 'reading', payload: { n } }));
    try {
      const { status, json } = await on.request('POST', '/v1/sync', { queue: 'q', seq: to + 1, records });
      if (status === 200) to = json.stored_to;
    } catch {
      return to;
    }
  }
  return to;
}

it('D19, D30: killed in full flight again and again, a queue loses nothing, doubles nothing and keeps its order', async () => {
  const last = 100_000;
  let server = await TestServer.start();
  const fleet = await createFleet(server);
  const devices = await Promise.all(Array.from({ length: 8 }, () => fleet.createDevice()));
  const storedTo = devices.map(() => 0);
  for (let round = 0; round < 5; round += 1) {
    const sent = devices.map((device, index) => sendQueue(device.on(server), storedTo[index] ?? 0, last));
    await sleep(200 + 150 * round);
    await server.kill();
    for (const [index, to] of (await Promise.all(sent)).entries()) storedTo[index] = to;
    server = await TestServer.start({}, server.report.data);
  }
  // As a device does whose last answer was lost.
  for (const [index, device] of devices.entries()) {
    const to = storedTo[index] ?? 0;
    storedTo[index] = await sendQueue(device.on(server), Math.max(0, to - 5), to + 20);
  }
  await server.stop();
  const records = await readRecords(server.report);
  for (const [index, { fleetId, deviceId }] of devices.entries()) {
    const own = records.filter((one) => one.fleetId === fleetId && one.deviceId === deviceId);
    const numbers = own.map(({ payload }) => JSON.parse(payload).n);
    expect(numbers.length).toBeGreaterThan(20);
    expect(numbers).toEqual(numbers.map((_, at) => at + 1));
    expect(numbers.length).toBe(storedTo[index]);
  }
});

it('D19: killed in full flight, no mail that was queued and no acknowledgement is lost', async () => {
  await using first = await TestServer.start();
  const device = await (await createFleet(first)).createDevice();
  const mails = await Promise.all(Array.from({ length: 100 }, () => device.sendMail()));
  const acknowledged = await untilKilled(first, 1, mails, 20, async ({ mailId }) =>
    expect((await device.settle('ack', mailId)).status).toBe(200),
  );
  await using restarted = await TestServer.start({}, first.report.data);
  const moved = device.on(restarted);
  const size = mails.length - acknowledged.size;
  // The one that was under way may or may not have been taken.
  expect([size, size - 1]).toContain(Number((await moved.next()).headers.get('x-mailbox-size')));
  for (const { mailId } of acknowledged) expect((await moved.settle('ack', mailId)).status).toBe(200);
  expect([size, size - 1]).toContain(Number((await moved.next()).headers.get('x-mailbox-size')));
});

it('D31: killed right behind the answer, a mail that a device had in hand is not replaced', async () => {
  await using first = await TestServer.start({ activityFlushSeconds: 300 });
  const fleet = await createFleet(first);
  const devices = await Promise.all(Array.from({ length: 8 }, () => fleet.createDevice()));
  const query = '?replace_key=set-point';
  for (const device of devices) await device.sendMail('set', '{"n":1}', query);
  const ways = devices.map((device, index) =>
    index % 2 ? device.next() : device.request('POST', '/v1/sync', {}),
  );
  for (const { status, text } of await Promise.all(ways))
    expect([status, text]).toEqual([200, expect.stringContaining('{"n":1}')]);
  await first.kill();
  await using second = await TestServer.start({}, first.report.data);
  for (const device of devices) {
    const moved = device.on(second);
    await moved.sendMail('set', '{"n":2}', query);
    await moved.sendMail('set', '{"n":3}', query);
    expect((await moved.mails()).map(({ payload }) => payload)).toEqual([{ n: 1 }, { n: 3 }]);
  }
});

it('D7, section 7: 500 internal_error for what the server cannot handle, and only for that', async () => {
  await using first = await TestServer.start();
  const damaged = await (await createFleet(first)).createDevice();
  await damaged.sendMail();
  await first.stop();
  const database = databaseOf(first.report.data);
  if (database !== undefined) await queryDatabase(database, 'DELETE FROM mail');
  await eachShard(first.report, async (environment) => {
    const mail = environment.table('mail');
    const keys = [...mail.getKeys({})].filter((key) => key.includes(damaged.deviceId));
    await environment.write(() => {
      for (const key of keys) mail.removeSync(key);
    });
  });
  await using second = await TestServer.start({}, first.report.data);
  const moved = damaged.on(second);
  const answer = await moved.next();
  expectError(answer, 500, 'internal_error');
  const requestId = answer.headers.get('x-request-id');
  expect(requestId).toMatch(/^[0-9a-f-]{36}$/);
  expect((await moved.heartbeat()).status).toBe(201);
  expect(JSON.parse(second.stderr)).toMatchObject({
    request_id: requestId,
    route: 'GET /v1/mailbox/next',
    msg: 'request handler failed',
  });
  expect((await moved.heartbeat()).headers.get('x-request-id')).toBeNull();
});

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer');

it('D3: a device that holds two secrets is let in with either of them and with no other', async () => {
  await using first = await TestServer.start();
  const { fleetId, deviceId, secret } = await (await createFleet(first)).createDevice();
  await first.stop();
  const key = deviceKeyOf(fleetId, deviceId);
  const second = generateDeviceSecret();
  const digests = [sha256(secret), sha256(second)];
  const database = databaseOf(first.report.data);
  const update = 'UPDATE device SET secret_digests = $2 WHERE device = $1';
  if (database !== undefined) await queryDatabase(database, update, [key, Buffer.concat(digests)]);
  await eachShard(first.report, async (environment) => {
    const devices = environment.table('devices');
    const bytes = devices.getBinary(Buffer.from(key));
    if (bytes === undefined) return;
    const changed = { ...decodeDevice(key, bytes), secretDigests: digests };
    await environment.write(() => devices.putSync(Buffer.from(key), encodeDevice(changed)));
  });
  await using restarted = await TestServer.start({}, first.report.data);
  for (const [given, status] of [
    [secret, 201],
    [second, 201],
    [generateDeviceSecret(), 401],
  ] as const) {
    const device = new TestDevice(restarted, fleetId, deviceId, given);
    expect((await device.heartbeat()).status).toBe(status);
  }
});

it('section 6: a server that stops ends its streams', async () => {
  await using own = await TestServer.start();
  const stream = await EventStream.open(await (await createFleet(own)).createDevice());
  expect(await own.stop()).toBe(0);
  await expect.poll(() => stream.isOver, { timeout: 15_000, interval: 20 }).toBe(true);
});
