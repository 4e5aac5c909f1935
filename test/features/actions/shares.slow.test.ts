/** Bounds of what one device or fleet takes of the actions of others. */

import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import type { Config } from '../../../src/server/configuration/config.ts';
import { anyObject, createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';

const patience = { timeout: 60_000, interval: 20 };
const actionQueueMax = 20;
const actionDeadLettersMax = 10;
const actionTestsMax = 12;
const actionReadsPerSecondMax = 50;
const config: Partial<Config> = {
  actionQueueMax,
  actionDeadLettersMax,
  actionTestsMax,
  actionReadsMax: 2 * actionReadsPerSecondMax,
  actionReadsPerSecondMax,
  actionAttemptsMax: 2,
  actionRetryMilliseconds: 20,
  actionCpuMilliseconds: 300,
};

let folder: string;
let server: TestServer;
beforeAll(async () => {
  folder = temporaryFolder();
  server = await TestServer.start(config, folder);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function newFleet(): Promise<TestFleet> {
  const fleet = await createFleet(server);
  await fleet.putSchema('message', 'opened', anyObject);
  return fleet;
}

interface Status {
  in_hand: number;
  behind: number;
  dead_letters: number;
  devices_behind: number;
  devices_blocked: number;
  held: string | null;
}

async function statusOf({ fleetId }: TestFleet): Promise<Status> {
  return (await server.admin<Status>('GET', `/fleets/${fleetId}/actions/relay`)).body;
}

async function put(fleet: TestFleet, source: string): Promise<void> {
  const { status, body } = await fleet.putAction('relay', source);
  if (status > 201) throw new Error(JSON.stringify(body));
}

const relay = (to: string) =>
  `export default (record, fleet) => { fleet.send('${to}', 'relayed', record.payload); }`;
/** It fails for records that say so. */
const moody = (to: string) =>
  `export default (record, fleet) => {
     if (record.payload.fails) throw new Error('not this one');
     fleet.send('${to}', 'relayed', record.payload);
   }`;

async function open(door: TestDevice, n: number, more: object = {}): Promise<void> {
  expect((await door.on(server).request('POST', '/v1/msg/opened', { n, ...more })).status).toBe(201);
}

/** The numbers that came from a door, in the order of their mails. */
async function numbersFrom(target: TestDevice, door: string): Promise<number[]> {
  const mails = await target.on(server).mails();
  return mails.filter(({ payload }) => payload.door === door).map(({ payload }) => payload.n as number);
}

const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

it('there are no more dead letters than may be; the rest waits, and all of it runs once there is room', async () => {
  const fleet = await newFleet();
  const target = await fleet.createDevice();
  const doors = await Promise.all(upTo(8).map(() => fleet.createDevice()));
  await put(fleet, `export default () => { throw new Error('never'); }`);
  for (const n of upTo(6)) await Promise.all(doors.map((door) => open(door, n, { door: door.deviceId })));
  await expect
    .poll(async () => {
      const { dead_letters, devices_blocked, held } = await statusOf(fleet);
      expect(dead_letters).toBeLessThanOrEqual(actionDeadLettersMax);
      return held === 'dead_letters_full' || devices_blocked === doors.length;
    }, patience)
    .toBe(true);
  // Runs that are still under way have their time to end.
  for (let looks = 0; looks < 20; looks += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await statusOf(fleet)).dead_letters).toBeLessThanOrEqual(actionDeadLettersMax);
  }
  const { dead_letters: count } = await statusOf(fleet);
  // Some room is left for devices that have none yet.
  expect(count).toBeGreaterThanOrEqual(doors.length);
  await put(fleet, relay(target.deviceId));
  const path = `/fleets/${fleet.fleetId}/actions/relay/dead-letters`;
  expect((await server.admin<{ items: unknown[] }>('GET', path)).body.items).toHaveLength(count);
  expect((await server.admin('POST', `${path}/replay`)).body).toEqual({ replayed: count });
  await expect.poll(async () => (await target.on(server).mails()).length, patience).toBe(8 * 6);
  for (const { deviceId } of doors) {
    expect((await numbersFrom(target, deviceId)).toSorted((a, b) => a - b)).toEqual(upTo(6));
  }
});

it('refused mails become dead letters within the same bound', async () => {
  const fleet = await newFleet();
  const doors = await Promise.all(upTo(15).map(() => fleet.createDevice()));
  await put(fleet, relay('NOSUCHDEV1'));
  for (const n of upTo(3)) await Promise.all(doors.map((door) => open(door, n)));
  await expect.poll(async () => (await statusOf(fleet)).held, patience).toBe('dead_letters_full');
  expect((await statusOf(fleet)).dead_letters).toBe(actionDeadLettersMax);
  const path = `/fleets/${fleet.fleetId}/actions/relay/dead-letters`;
  await server.admin('POST', `${path}/replay`);
  await expect.poll(async () => (await statusOf(fleet)).dead_letters, patience).toBe(actionDeadLettersMax);
});

it('the failing records of one device stop nobody else, across kill -9 too, and run in their order later', async () => {
  const fleet = await newFleet();
  const target = await fleet.createDevice();
  const [bad, good] = [await fleet.createDevice(), await fleet.createDevice()];
  await put(fleet, moody(target.deviceId));
  const count = 3 * actionQueueMax;
  for (const n of upTo(count)) {
    await open(bad, n, { door: bad.deviceId, fails: true });
    if (n % 2 === 0) await open(good, n / 2, { door: good.deviceId });
    if (n === count / 2) {
      await server.kill();
      server = await TestServer.start(config, folder);
      fleet.server = server;
    }
  }
  await expect.poll(() => numbersFrom(target, good.deviceId), patience).toEqual(upTo(count / 2));
  // It has its share of the dead letters, and some in hand.
  await expect.poll(async () => (await statusOf(fleet)).devices_behind, patience).toBe(1);
  const { held, dead_letters: letters, devices_blocked, in_hand, behind } = await statusOf(fleet);
  expect({ held, devices_blocked }).toEqual({ held: null, devices_blocked: 1 });
  const { body } = await server.admin<{ items: object[] }>('GET', `/fleets/${fleet.fleetId}/attention`);
  expect(body.items).toContainEqual(expect.objectContaining({ kind: 'action_devices_blocked', count: 1 }));
  expect(body.items).not.toContainEqual(expect.objectContaining({ kind: 'action_held' }));
  expect(letters).toBeLessThanOrEqual(actionDeadLettersMax / 2);
  expect(in_hand).toBeLessThanOrEqual(actionQueueMax / 2);
  expect(behind).toBeGreaterThan(0);
  await server.kill();
  server = await TestServer.start(config, folder);
  fleet.server = server;
  await put(fleet, relay(target.deviceId));
  await server.admin('POST', `/fleets/${fleet.fleetId}/actions/relay/dead-letters/replay`);
  await expect.poll(async () => (await numbersFrom(target, bad.deviceId)).length, patience).toBe(count);
  // Dead letters are older than what waited, and either is in its order.
  const arrived = await numbersFrom(target, bad.deviceId);
  const inOrder = (numbers: number[]) => numbers.toSorted((a, b) => a - b);
  expect(arrived.filter((n) => n < letters)).toEqual(upTo(letters));
  expect(arrived.filter((n) => n >= letters)).toEqual(upTo(count).slice(letters));
  expect(inOrder(arrived)).toEqual(upTo(count));
  expect(await numbersFrom(target, good.deviceId)).toEqual(upTo(count / 2));
  await expect
    .poll(async () => {
      const status = await statusOf(fleet);
      return [status.in_hand, status.behind, status.dead_letters, status.devices_behind];
    }, patience)
    .toEqual([0, 0, 0, 0]);
});

it('endless tests of one fleet have a share of tests, and take turns with the runs and tests of another', async () => {
  const [greedy, other] = [await newFleet(), await newFleet()];
  const [door, target] = [await other.createDevice(), await other.createDevice()];
  await put(other, relay(target.deviceId));
  let ended = 0;
  const record = { device: 'ANYDEVICE1', payload: {} };
  const draft = {
    source: 'export default () => { for (;;); }',
    language: 'javascript',
    on: [{ kind: 'message', schema: 'opened' }],
  };
  const path = `/fleets/${greedy.fleetId}/actions/endless/test`;
  const tests = upTo(4 * actionTestsMax).map(async () => {
    const { status, body } = await server.admin<{ msg?: string }>('POST', path, { record, draft });
    ended += 1;
    return { status, msg: body.msg };
  });
  onTestFinished(() => void Promise.allSettled(tests));
  const refusals = (await Promise.all(tests.slice(actionTestsMax))).filter(({ status }) => status === 503);
  expect(refusals[0]?.msg).toContain('actionTestsMax');
  await Promise.all(upTo(3).map((n) => open(door, n, { door: door.deviceId })));
  const trial = await server.admin('POST', `/fleets/${other.fleetId}/actions/relay/test`, { record });
  expect(trial.status).toBe(200);
  await expect.poll(async () => (await target.on(server).mails()).length, patience).toBe(3);
  // Those of the first fleet are still at it: nobody has waited for them.
  expect(ended).toBeLessThan(tests.length);
  const answers = await Promise.all(tests);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(actionTestsMax / 2);
});

it('what a run reads is bounded, and waits beyond the rate of its fleet', async () => {
  const fleet = await newFleet();
  const door = await fleet.createDevice();
  const lookUp = async (times: number) => {
    const source = `export default async (record, fleet) => {
      for (let n = 0; n < ${times}; n += 1) await fleet.device(record.device);
    }`;
    const draft = { source, language: 'javascript', on: [{ kind: 'message', schema: 'opened' }] };
    const path = `/fleets/${fleet.fleetId}/actions/relay/test`;
    const record = { device: door.deviceId, payload: {} };
    interface Trial {
      error: { code: string } | null;
      wall_milliseconds: number;
    }
    return (await server.admin<Trial>('POST', path, { record, draft })).body;
  };
  const { error, wall_milliseconds } = await lookUp(2 * actionReadsPerSecondMax);
  expect(error).toBeNull();
  expect(wall_milliseconds).toBeGreaterThan(950);
  expect((await lookUp(2 * actionReadsPerSecondMax + 1)).error?.code).toBe('too_many_reads');
});
