/** A data folder whose server's clock jumps. */

import { rmSync } from 'node:fs';
import { uuidv7 } from 'uuidv7';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Config } from '../../../src/server/configuration/config.ts';
import { createFleet, type DeviceAnswer, type TestDevice } from '../../harness/devices/device.ts';
import { expectError } from '../../harness/devices/routes.ts';
import { FakedClock } from '../../harness/machine/faked-clock.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { pause, until } from '../../harness/server/vitals.ts';
import { readRecords } from '../../harness/storage/log.ts';

const hour = 3_600;
const day = 24 * hour;
const year = 365 * day;
const body = '{"a":1}';

let clock: FakedClock;
let folder: string;
let server: TestServer;
let device: TestDevice;
beforeEach(() => {
  clock = new FakedClock();
  folder = temporaryFolder();
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function start(config: Partial<Config> = {}): Promise<void> {
  server = await TestServer.start(config, folder, { environment: clock.environment });
  device = await (await createFleet(server)).createDevice();
}

async function restart(): Promise<void> {
  await server.kill();
  server = await TestServer.start({}, folder, { environment: clock.environment });
  device = device.on(server);
}

/** Settles when every shard has noticed. */
async function jumpTo(offsetSeconds: number): Promise<void> {
  const noticed = (): number => server.stderr.split('clock jumped').length - 1;
  const before = noticed();
  clock.set(offsetSeconds);
  await until(() => noticed() >= before + server.report.shards);
}

function send(key: string): Promise<DeviceAnswer> {
  return device.request('POST', '/v1/datapoint/reading', body, { 'Idempotency-Key': key });
}

/** Answers what it says. */
function expectInvalid(answer: DeviceAnswer): string {
  expectError(answer, 400, 'invalid_idempotency_key');
  return answer.json.msg;
}

async function expectReplay(key: string): Promise<void> {
  const answer = await send(key);
  expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([201, 'true']);
}

/** A UUIDv7 of the server's time, which is that far from ours. */
function keyOf(offsetSeconds: number): string {
  const hex = (Date.now() + offsetSeconds * 1_000).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}${uuidv7().slice(13)}`;
}

async function mails(): Promise<{ mail_id: string; accepted_at: string; expires_at: string }[]> {
  const { body } = await server.admin<{ items: [] }>('GET', `${device.adminPath}/mail`);
  return body.items;
}

async function mailIds(): Promise<string[]> {
  return (await mails()).map(({ mail_id }) => mail_id);
}

/** Mail of a second's life goes, and no other does: the sweeper is at work, by time that really passes. */
async function expectOnlyShortLivedToExpire(): Promise<void> {
  const before = await mailIds();
  const { mailId } = await device.sendMail('short', '{}', '?ttl_seconds=1');
  expect(await mailIds()).toEqual([...before, mailId]);
  await until(async () => !(await mailIds()).includes(mailId));
  expect(await mailIds()).toEqual(before);
}

it('a clock that jumps a year ahead, back, 30 years back, and right again: mail keeps its order and its life, keys stay remembered', async () => {
  await start();
  const ids = [await device.sendMail(), await device.sendMail()].map(({ mailId }) => mailId);
  const keys = [uuidv7()];
  expect((await send(keys[0] ?? '')).status).toBe(201);
  for (const [offset, complaint] of [
    [year, 'old'],
    [0, ''],
    [-30 * year, 'ahead'],
    [0, ''],
  ] as const) {
    await jumpTo(offset);
    ids.push((await device.sendMail()).mailId);
    await expectOnlyShortLivedToExpire();
    expect(await mailIds()).toEqual(ids);
    for (const key of keys) await expectReplay(key);
    // D18: new keys go by the server's clock, right or wrong.
    if (offset !== 0) expect(expectInvalid(await send(uuidv7()))).toContain(complaint);
    const key = keyOf(offset);
    expect((await send(key)).status).toBe(201);
    keys.push(key);
  }
  expect((await device.next()).headers.get('x-mail-id')).toBe(ids[0]);
  await server.stop();
  expect(await readRecords(server.report)).toHaveLength(keys.length);
});

it('D18: a key that was forgotten by a clock ahead is not taken anew when it is set back', async () => {
  await start({ idempotencyWindowSeconds: 60, clockJumpGraceSeconds: 1 });
  const key = uuidv7();
  expect((await send(key)).status).toBe(201);
  await jumpTo(day);
  await expectReplay(key);
  // Longer than the grace: the day ahead is believed, and each jump brings on a full sweep.
  await pause(1_500);
  await jumpTo(day - 10);
  await jumpTo(0);
  expect(expectInvalid(await send(key))).toContain('old');
  expect((await send(uuidv7())).status).toBe(201);
});

it('a server that was off for hours does not deliver what is over; one that wakes in another year keeps its mail', async () => {
  await start();
  const key = uuidv7();
  expect((await send(key)).status).toBe(201);
  await device.sendMail('command', '{}', `?ttl_seconds=${hour}`);
  const { mailId } = await device.sendMail();
  for (const offset of [5 * hour, year, -30 * year]) {
    clock.set(offset);
    await restart();
    await until(async () => (await mailIds()).length === 1);
    await expectOnlyShortLivedToExpire();
    expect(await mailIds()).toEqual([mailId]);
    await expectReplay(key);
    const [mail] = await mails();
    const daysLeft = (Date.parse(mail?.expires_at ?? '') / 1_000 - Date.now() / 1_000 - offset) / day;
    expect(daysLeft).toBeGreaterThan(5.7);
    expect(daysLeft).toBeLessThan(7.01);
  }
});
