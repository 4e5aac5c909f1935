/** Rules of the spec whose limits and times are configuration. */

import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { createFleet, type DeviceAnswer, type TestFleet } from '../harness/devices/device.ts';
import { closeStreams, EventStream } from '../harness/devices/event-stream.ts';
import { type RawAnswer, RawConnection, requestText } from '../harness/devices/raw.ts';
import { expectError, valuesOf } from '../harness/devices/routes.ts';
import { TestServer } from '../harness/server/server.ts';
import { until } from '../harness/server/vitals.ts';

/** Settings that an operator may change, all on one server, since none is in the way of the others. */
const streamKeepAliveSeconds = 3;
let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  server = await TestServer.start({
    activityFlushSeconds: 300,
    mailboxMailsMax: 1,
    mailTtlSeconds: 1,
    idempotencyWindowSeconds: 60,
    idempotencySkewSeconds: 0,
    bodyTimeoutSeconds: 1,
    streamKeepAliveSeconds,
  });
  fleet = await createFleet(server);
});
afterEach(closeStreams);
afterAll(() => server[Symbol.asyncDispose]());

/** A UUIDv7 of that time. */
function keyAt(timeMs: number): string {
  const hex = timeMs.toString(16).padStart(12, '0') + randomBytes(10).toString('hex');
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-7$3-8$4-$5');
}

it('D13: a fetch costs no write', async () => {
  const to = await fleet.createDevice();
  await to.sendMail('note', '{}', '?ttl_seconds=3600');
  const commits = async (): Promise<number> => {
    const text = await (await fetch(`${server.report.admin_url}/metrics`)).text();
    const counts = [...text.matchAll(/^fleetpost_commits_total\{.*\} (\d+)$/gm)].map(([, count]) =>
      Number(count),
    );
    expect(counts).toHaveLength(server.report.shards);
    return counts.reduce((sum, count) => sum + count, 0);
  };
  // The sweeper commits once a minute of its own accord, and once soon after the start.
  await expect
    .poll(
      async () => {
        const before = await commits();
        for (let fetch = 0; fetch < 20; fetch += 1) await to.next();
        return (await commits()) - before;
      },
      { timeout: 20_000 },
    )
    .toBe(0);
});

it('D16: the server has a limit of its own for fleets that have none', async () => {
  const to = await fleet.createDevice();
  expect((await to.sendMail()).status).toBe(201);
  expect((await to.sendMail()).status).toBe(409);
  await expect.poll(async () => (await to.next()).status).toBe(204);
  expect((await to.sendMail()).status).toBe(201);
});

it('D18: both limits are configurable', async () => {
  const on = await fleet.createDevice();
  const send = (timeMs: number): Promise<DeviceAnswer> =>
    on.request('POST', '/v1/datapoint/reading', { a: 1 }, { 'Idempotency-Key': keyAt(timeMs) });
  const { status, text, headers } = await send(Date.now());
  expect([status, text, headers.get('idempotent-replayed')]).toEqual([201, '{"ok":true}', null]);
  expectError(await send(Date.now() - 61_000), 400, 'invalid_idempotency_key');
  expectError(await send(Date.now() + 60_000), 400, 'invalid_idempotency_key');
});

it('D22: a body that takes longer than bodyTimeoutSeconds is 400 bad_request', async () => {
  const one = await fleet.createDevice();
  const connection = await RawConnection.open(server);
  const headers = { ...one.credentials, 'Content-Type': 'application/json', 'Content-Length': '1000' };
  connection.write(requestText('POST', '/v1/datapoint/reading', headers, '{"a":1'));
  expectError(await connection.answer(), 400, 'bad_request');
  await connection.closed();
  expect((await one.heartbeat()).status).toBe(201);
});

it('D20: it tells the time, again and again', async () => {
  const stream = await EventStream.open(await fleet.createDevice());
  const events = await stream.has('keep_alive', 3);
  const times = events.map(({ data }) => Number(data.time));
  for (const [index, { data, atMs }] of events.entries()) {
    expect(Object.keys(data)).toEqual(['time']);
    expect(Number.isInteger(data.time)).toBe(true);
    expect(Math.abs(atMs - (times[index] ?? 0))).toBeLessThan(1_000);
  }
  expect((times[2] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(1_000);
});

it('D20: streams that were opened at different times are not kept alive together', async () => {
  const one = await EventStream.open(await fleet.createDevice());
  // Half an interval: it is the passing of time that is tested.
  await new Promise((resolve) => setTimeout(resolve, (streamKeepAliveSeconds / 2) * 1_000));
  const other = await EventStream.open(await fleet.createDevice());
  const [first] = await one.has('keep_alive', 1);
  const [second] = await other.has('keep_alive', 1);
  const apartMs = (Number(second?.data.time) - Number(first?.data.time)) % (streamKeepAliveSeconds * 1_000);
  expect(apartMs).toBeGreaterThan(200);
});

it('D6: a lockout ends after its time; D8: strictStatuses answers 500', async () => {
  const config = { unauthorizedWindowSeconds: 3, lockoutSecondsMax: 3, strictStatuses: true };
  await using short = await TestServer.start(config);
  const device = await (await createFleet(short)).createDevice();
  const beat = async (change: Record<string, string> = {}): Promise<RawAnswer> => {
    const connection = await RawConnection.open(short, { localAddress: '127.0.0.1' } as object);
    connection.write(requestText('POST', '/v1/heartbeat', { ...device.credentials, ...change }));
    const answer = await connection.answer();
    connection.destroy();
    return answer;
  };
  const wrong = { 'X-Device-Secret': `FOS-${'X'.repeat(32)}` };
  let answer = await beat(wrong);
  // 10 in 3 seconds may take two windows on a slow machine.
  while (answer.status === 401) answer = await beat(wrong);
  expectError(answer, 500, 'rate_limited');
  const [retryAfter = ''] = valuesOf(answer, 'retry-after');
  expect(retryAfter).toMatch(/^\d+$/);
  expect(Number(retryAfter)).toBeLessThanOrEqual(3);
  await until(async () => (await beat()).status === 201);
});

it('a client whose chunks do not end is told so when its time is over', async () => {
  await using hasty = await TestServer.start({ requestTimeoutSeconds: 2 });
  const connection = await RawConnection.open(hasty);
  connection.write(requestText('GET', '/', { 'Transfer-Encoding': 'chunked' }, '7\r\n1'));
  expect((await connection.answer()).status).toBe(503);
  await connection.closed();
});
