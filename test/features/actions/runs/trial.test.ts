import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { anyObject, createFleet, type TestDevice, type TestFleet } from '../../../harness/devices/device.ts';
import { fleetpost } from '../../../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../../../harness/server/server.ts';

const folder = temporaryFolder();
let server: TestServer;
let fleet: TestFleet;
let sensor: TestDevice;
let lock: TestDevice;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
  await fleet.putSchema('message', 'warm', anyObject);
  sensor = await fleet.createDevice();
  lock = await fleet.createDevice();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, content: string | object): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const shown = (...args: string[]) =>
  fleetpost(['action', ...args, '--fleet', fleet.fleetId, '--data', server.report.data]);

// biome-ignore lint/suspicious/noExplicitAny: a test asserts what it finds
async function ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: any }> {
  return server.admin(method, `/fleets/${fleet.fleetId}/actions${path}`, body);
}

/** Acts at the third warm reading; what is cold starts over. */
const source = (to: string) => `export default async (record, fleet) => {
  if (record.payload.broken) throw new TypeError('broken');
  if (record.payload.celsius < 30) return fleet.state.delete('count');
  const count = ((await fleet.state.get('count')) ?? 0) + 1;
  await fleet.state.set('count', count);
  await fleet.state.set('last', record.payload);
  if (count === 3) await fleet.send('${to}', 'too_warm', { count });
};
`;
const of = (...celsius: number[]) =>
  celsius.map((one) => ({ device: sensor.deviceId, payload: { celsius: one } }));

it('a test has a sequence of records, the state before them, and what they must send and leave', async () => {
  const code = file('warm.mjs', source(lock.deviceId));
  const mails = [{ to: lock.deviceId, name: 'too_warm', payload: { count: 3 } }];
  const right = [
    { records: of(31, 32, 33), mails, state_after: { count: 3, last: { celsius: 33 } } },
    { records: of(31, 32, 20, 33), mails: [] },
    { state: { count: 2, other: [null] }, record: of(40)[0], mails },
    { state: { count: 2, other: true }, records: of(1), mails: [], state_after: { other: true } },
  ];
  const put = await shown('put', 'warm', code, '--on', 'warm', '--test', file('right.json', right));
  expect(put).toMatchObject({ status: 0, stderr: '' });
  expect(put.stdout).toBe('Version 1 of warm is deployed.\n4 of 4 tests passed.\n');
  expect((await ask('GET', '/warm/versions/1')).body.tests).toEqual(right);
  // None of it is stored.
  const tried = await ask('POST', '/warm/test', { record: of(35)[0] });
  expect(tried.body.state[0]).toEqual({ key: 'count', removed: false, value: 1 });
});

it('a test that fails says which record, what was expected and what was', async () => {
  const code = file('wrong.mjs', source(lock.deviceId));
  const mails = [{ to: lock.deviceId, name: 'too_warm', payload: { count: 4 } }];
  const wrong = [
    { records: of(31, 32, 33), mails, state_after: { count: 9, last: { celsius: 33 }, more: 1 } },
    { records: [...of(31), { device: sensor.deviceId, payload: { broken: true } }, ...of(31)] },
    { records: of(31), mails },
  ];
  const put = await shown('put', 'wrong', code, '--on', 'warm', '--test', file('wrong.json', wrong));
  expect(put).toMatchObject({ status: 1, stdout: '' });
  expect(put.stderr).toContain(`Test 1 failed: Mail 1 is another (1 expected, 1 sent):
  expected: too_warm to ${lock.deviceId} {"count":4}
  sent:     too_warm to ${lock.deviceId} {"count":3} (by record 3)
The state under "count" is another after the last record:
  expected: 9
  left:     3
The state under "more" is another after the last record:
  expected: 1
  left:     none
Test 2 failed: record 2 of 3: threw: TypeError: broken\n`);
  expect(put.stderr).toContain(`Mail 1 is another (1 expected, 0 sent):
  expected: too_warm to ${lock.deviceId} {"count":4}
  sent:     none\n`);
  expect((await ask('GET', '/wrong')).body.error).toBe('action_not_found');
});

it('action test takes a test too, and says whether it passed', async () => {
  const code = file('tried.mjs', source(lock.deviceId));
  const passing = file('passing.json', { records: of(31, 32, 33), state_after: undefined });
  const passed = await shown('test', 'tried', passing, '--file', code, '--on', 'warm');
  expect(passed).toMatchObject({ status: 0, stderr: '' });
  expect(passed.stdout).toMatch(/record +device[\s\S]*3 +\S+ +too_warm[\s\S]*count +3[\s\S]*It succeeded/);
  const failing = file('failing.json', { records: of(31), mails: [], state_after: {} });
  const failed = await shown('test', 'tried', failing, '--file', code, '--on', 'warm');
  expect(failed.status).toBe(1);
  expect(failed.stdout).toMatch(
    /The test failed after .*: The state under "count" is another after the last record:\n {2}expected: none\n {2}left: {5}1\n/,
  );
});

it('a test that cannot be is refused with a sentence', async () => {
  const put = (test: object) =>
    ask('PUT', '/refused', {
      source: 'export default () => {}',
      language: 'javascript',
      on: [{ kind: 'message', schema: 'warm' }],
      tests: [test],
    });
  const refused: [object, string, RegExp][] = [
    [{}, 'invalid_action', /either a record or a list of records/],
    [{ record: of(1)[0], records: of(1) }, 'invalid_action', /either a record or a list of records/],
    [{ records: [] }, 'invalid_body', /./],
    [{ records: Array(101).fill(of(1)[0]) }, 'invalid_body', /./],
    [{ records: [{ device: 'x', payload: {} }] }, 'invalid_action', /the record of test 1 at 1/],
    [{ records: of(1), state: { '': 1 } }, 'invalid_action', /1 to 128 characters.*entry 1 of the state/],
    [{ records: of(1), state: { a: null } }, 'invalid_action', /Null is no value/],
    [
      { records: of(1), state_after: { a: 'x'.repeat(4_095) } },
      'invalid_action',
      /4096 bytes as JSON \(actionStateValueBytesMax\).*entry 1 of the state after/,
    ],
    [
      {
        records: of(1),
        state: Object.fromEntries(Array.from({ length: 1_001 }, (_, key) => [`k${key}`, 1])),
      },
      'invalid_action',
      /1000 keys \(actionStateKeysMax\)/,
    ],
  ];
  for (const [test, error, msg] of refused) {
    const { body } = await put(test);
    expect(body).toMatchObject({ error, msg: expect.stringMatching(msg) });
  }
  expect((await ask('POST', '/refused/test', {})).body.error).toBe('invalid_body');
});

it('a trial shows 1 MiB at most, whatever each of its records sends, keeps or logs', async () => {
  const toMany = `const ids = Array.from({ length: 1_000 }, (_, at) => 'X' + String(at).padStart(9, '0'));
    export default (record, fleet) => fleet.send(ids, 'x', { text: 'y'.repeat(record.payload.bytes) });`;
  const keeping = `export default async (record, fleet) => {
    for (let at = 0; at < 90; at += 1) await fleet.state.set(String(at + record.payload.more), 'z'.repeat(4_000));
  };`;
  const logging = `export default () => { for (let at = 0; at < 100; at += 1) console.log('l'.repeat(1_000)); };`;
  const records = (count: number, payload: object) =>
    Array.from({ length: count }, () => ({ device: sensor.deviceId, payload }));
  const tried = async (code: string, sequence: object[]) => {
    const draft = { language: 'javascript', source: code, on: [{ kind: 'message', schema: 'warm' }] };
    return (await ask('POST', '/large/test', { test: { records: sequence }, draft })).body;
  };
  const tooLarge = { code: 'trial_too_large', msg: expect.stringContaining('1048576 bytes') };
  expect((await tried(toMany, records(1, { bytes: 800 }))).mails).toHaveLength(1_000);
  expect(await tried(toMany, records(100, { bytes: 16_000 }))).toMatchObject({ error: tooLarge, mails: [] });
  expect(await tried(toMany, records(2, { bytes: 800 }))).toMatchObject({ error: tooLarge, records: 2 });
  expect(await tried(logging, records(20, {}))).toMatchObject({ error: tooLarge });
  // What is written again is shown once.
  expect(await tried(keeping, records(10, { more: 0 }))).toMatchObject({ error: null, records: 10 });
  const others = Array.from({ length: 4 }, (_, at) => records(1, { more: at * 100 })[0] as object);
  expect(await tried(keeping, others)).toMatchObject({ error: tooLarge, records: 3 });
});
