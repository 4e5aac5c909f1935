/** Decision D18, section 8: idempotency keys. */

import { randomBytes } from 'node:crypto';
import { uuidv7 } from 'uuidv7';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  createFleet,
  type DeviceAnswer,
  oneConnection,
  type TestDevice,
  type TestFleet,
} from '../harness/devices/device.ts';
import { expectError } from '../harness/devices/routes.ts';
import { TestServer } from '../harness/server/server.ts';
import { readRecords } from '../harness/storage/log.ts';

const datapoint = '/v1/datapoint/reading';
const message = '/v1/msg/note';
const second = 1_000;
const minute = 60 * second;
const day = 24 * 60 * minute;

let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
});
/** A UUIDv7 of that time. */
function keyAt(timeMs: number): string {
  const hex = timeMs.toString(16).padStart(12, '0') + randomBytes(10).toString('hex');
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-7$3-8$4-$5');
}

type Sent = { path?: string; body?: string; on?: TestDevice };

async function sendWith(
  key: string,
  { path = datapoint, body = '{"a":1}', on }: Sent = {},
): Promise<DeviceAnswer> {
  const device = on ?? (await fleet.createDevice());
  return device.request('POST', path, body, { 'Idempotency-Key': key });
}

function expectStored({ status, text, headers }: DeviceAnswer): void {
  expect([status, text, headers.get('idempotent-replayed')]).toEqual([201, '{"ok":true}', null]);
}

function expectReplayed({ status, text, headers }: DeviceAnswer): void {
  expect([status, text, headers.get('idempotent-replayed')]).toEqual([201, '{"ok":true}', 'true']);
}

describe('D18, section 8: what a key may be', () => {
  const spellings = [
    ['36 characters', (key: string) => key],
    ['32 characters', (key: string) => key.replaceAll('-', '')],
    ['upper case', (key: string) => key.toUpperCase()],
    ['upper case of 32 characters', (key: string) => key.replaceAll('-', '').toUpperCase()],
    ['double quotes', (key: string) => `"${key}"`],
    ['double quotes around 32 characters', (key: string) => `"${key.replaceAll('-', '')}"`],
  ] as const;

  it.each(spellings)('D18: a key of %s is taken, and is the same key', async (_, spell) => {
    const on = await fleet.createDevice();
    const key = uuidv7();
    expectStored(await sendWith(spell(key), { on }));
    expectReplayed(await sendWith(key, { on }));
    expectReplayed(await sendWith(spell(key), { on }));
  });

  const key = keyAt(Date.now());
  const withCharacter = (at: number, character: string): string =>
    key.slice(0, at) + character + key.slice(at + 1);
  it.each([
    ['a word', 'nonsense'],
    ['a number', '1'],
    ['nothing', ''],
    ['spaces', '  '],
    ['empty quotes', '""'],
    ['one quote', '"'],
    ['a key with a quote before it', `"${key}`],
    ['a key with a quote behind it', `${key}"`],
    ['a key in single quotes', `'${key}'`],
    ['a key in braces', `{${key}}`],
    ['a URN', `urn:uuid:${key}`],
    ['35 characters', key.slice(1)],
    ['37 characters', `${key}0`],
    ['a key that lacks a dash', key.replace('-', '')],
    ['a key whose dash is elsewhere', `${key.slice(0, 7)}-${key[7]}${key.slice(9)}`],
    ['a UUID of version 4', withCharacter(14, '4')],
    ['a UUID of version 1', withCharacter(14, '1')],
    ['a UUID of another variant', withCharacter(19, 'c')],
    ['a key with a letter too many', withCharacter(0, 'g')],
    ['two keys', `${key}, ${key}`],
    ['the nil UUID', '00000000-0000-0000-0000-000000000000'],
    ['the max UUID', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
  ])('D18: %s is 400 invalid_idempotency_key', async (_, bad) => {
    for (const path of [datapoint, message]) {
      expectError(await sendWith(bad, { path }), 400, 'invalid_idempotency_key');
    }
  });

  it('D18: its time is at most 24 h old', async () => {
    expectStored(await sendWith(keyAt(Date.now() - day + minute)));
    expectError(await sendWith(keyAt(Date.now() - day - minute)), 400, 'invalid_idempotency_key');
    expectError(await sendWith(keyAt(0)), 400, 'invalid_idempotency_key');
  });

  it('D18: its time is at most 5 min ahead', async () => {
    expectStored(await sendWith(keyAt(Date.now() + 4 * minute)));
    expectError(await sendWith(keyAt(Date.now() + 6 * minute)), 400, 'invalid_idempotency_key');
    expectError(await sendWith(keyAt(2 ** 48 - 1)), 400, 'invalid_idempotency_key');
  });

  it('D18: a key is optional', async () => {
    const on = await fleet.createDevice();
    for (const path of [datapoint, datapoint, message]) {
      expectStored(await on.request('POST', path, '{"a":1}'));
    }
  });
});

describe('D18: repeating a key', () => {
  it.each([datapoint, message])('D18: the same request on %s is answered the stored 201', async (path) => {
    const on = await fleet.createDevice();
    const key = uuidv7();
    expectStored(await sendWith(key, { path, on }));
    for (let time = 0; time < 3; time += 1) expectReplayed(await sendWith(key, { path, on }));
  });

  it.each([
    ['another route', { path: '/v1/msg/reading' }],
    ['another schema', { path: '/v1/datapoint/other' }],
    ['another body', { body: '{"a":2}' }],
    ['the same body with other white space', { body: '{"a": 1}' }],
  ])('D18: with %s: 400 idempotency_key_reused, and the first request still counts', async (_, different) => {
    await fleet.putSchema('datapoint', 'other', {});
    await fleet.putSchema('message', 'reading', {});
    const on = await fleet.createDevice();
    const key = uuidv7();
    expectStored(await sendWith(key, { on }));
    expectError(await sendWith(key, { ...different, on }), 400, 'idempotency_key_reused');
    expectReplayed(await sendWith(key, { on }));
  });

  it('D18: its scope is the device', async () => {
    const device_id = 'SHAREDID00';
    const elsewhere = await createFleet(server);
    const key = uuidv7();
    for (const on of [
      await fleet.createDevice({ device_id }),
      await fleet.createDevice(),
      await elsewhere.createDevice({ device_id }),
    ]) {
      expectStored(await sendWith(key, { on, body: `{"of":"${on.secret}"}` }));
      expectReplayed(await sendWith(key, { on, body: `{"of":"${on.secret}"}` }));
    }
  });

  it('D18: of many at once one is stored; the others wait and are replays', async () => {
    const on = await fleet.createDevice();
    const key = uuidv7();
    const answers = await Promise.all(Array.from({ length: 30 }, () => sendWith(key, { on })));
    expect(answers.map(({ status }) => status)).toEqual(Array(30).fill(201));
    const replays = answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true');
    expect(replays).toHaveLength(29);
  });

  it('D18: of different ones at once one is stored and the others are refused', async () => {
    const on = await fleet.createDevice();
    const key = uuidv7();
    const bodies = Array.from({ length: 10 }, (_, index) => `{"a":${index}}`);
    const answers = await Promise.all(bodies.map((body) => sendWith(key, { on, body })));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    for (const answer of answers) {
      if (answer.status !== 201) expectError(answer, 400, 'idempotency_key_reused');
    }
  });

  it('D18: on whatever connection and worker it comes again', async () => {
    const on = await fleet.createDevice();
    const headers = { 'Idempotency-Key': uuidv7() };
    const agents = [1, 2, 3, 4].map(() => oneConnection(server));
    const [first, ...others] = agents;
    expectStored(await on.request('POST', datapoint, '{"a":1}', headers, first));
    for (const agent of others)
      expectReplayed(await on.request('POST', datapoint, '{"a":1}', headers, agent));
    await Promise.all(agents.map((agent) => agent.destroy()));
  });

  it('D18: a request that failed leaves no trace of its key', async () => {
    await fleet.putSchema('datapoint', 'strict', { required: ['a'] });
    const on = await fleet.createDevice();
    const key = uuidv7();
    const headers = { 'Idempotency-Key': key };
    const failures = [
      await on.request('POST', '/v1/datapoint/strict', '{', headers),
      await on.request('POST', '/v1/datapoint/strict', '{}', headers),
      await on.request('POST', '/v1/datapoint/strict', '{"b":1}', headers),
      await on.request('POST', '/v1/datapoint/nothing', '{"a":1}', headers),
      await on.request('POST', '/v1/datapoint/strict', 'x'.repeat(65_537), headers),
      await on.request('POST', '/v1/datapoint/strict', '{"a":1}', {
        ...headers,
        'Content-Type': 'text/plain',
      }),
      await on.request('POST', '/v1/datapoint/strict', '{"a":1}', { ...headers, 'X-Device-Secret': 'x' }),
    ];
    expect(failures.map(({ status }) => status)).toEqual([400, 400, 400, 404, 413, 415, 400]);
    expectStored(await sendWith(key, { on, path: '/v1/datapoint/strict' }));
    expectReplayed(await sendWith(key, { on, path: '/v1/datapoint/strict' }));
  });

  it('D18: other routes do not look at the header', async () => {
    const on = await fleet.createDevice();
    const headers = { 'Idempotency-Key': 'nonsense' };
    expect((await on.request('POST', '/v1/heartbeat', undefined, headers)).status).toBe(201);
    expect((await on.request('GET', '/v1/mailbox/size', undefined, headers)).status).toBe(200);
  });
});

it('D18: what was answered as a replay or refused is not stored a second time', async () => {
  await using own = await TestServer.start();
  const on = await (await createFleet(own)).createDevice();
  const key = uuidv7();
  await Promise.all(Array.from({ length: 10 }, () => sendWith(key, { on, body: '{"n":1}' })));
  expectError(await sendWith(key, { on, body: '{"n":2}' }), 400, 'idempotency_key_reused');
  expectError(await sendWith('nonsense', { on, body: '{"n":3}' }), 400, 'invalid_idempotency_key');
  expectReplayed(await sendWith(key, { on, body: '{"n":1}' }));
  expectStored(await sendWith(uuidv7(), { on, body: '{"n":4}', path: message }));
  await own.stop();
  const records = await readRecords(own.report);
  expect(records.map(({ kind, schema, payload }) => [kind, schema, payload])).toEqual([
    ['datapoint', 'reading', '{"n":1}'],
    ['message', 'note', '{"n":4}'],
  ]);
});
