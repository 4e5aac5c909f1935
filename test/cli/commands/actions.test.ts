import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { anyObject, createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { fleetpost, fleetpostJson } from '../../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';

const patience = { timeout: 60_000, interval: 50 };
const folder = temporaryFolder();
let server: TestServer;
let fleet: TestFleet;
let sensor: TestDevice;
let lock: TestDevice;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
  await fleet.putSchema('message', 'opened', anyObject);
  sensor = await fleet.createDevice({ name: 'front door' });
  lock = await fleet.createDevice({ tags: ['hall'] });
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
});

function file(name: string, content: string | object): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const action = (...args: string[]) => fleetpostJson(server, ['action', ...args, '--fleet', fleet.fleetId]);
/** Runs the command and returns what a person sees. */
const shown = (...args: string[]) =>
  fleetpost(['action', ...args, '--fleet', fleet.fleetId, '--data', server.report.data]);

// biome-ignore lint/suspicious/noExplicitAny: a test asserts what it finds
async function ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: any }> {
  return server.admin(method, `/fleets/${fleet.fleetId}/actions${path}`, body);
}

async function mailboxSize(device: TestDevice): Promise<number> {
  const { body } = await server.admin<{ mailbox_size: number }>('GET', device.adminPath);
  return body.mailbox_size;
}

const good = { source: 'export default () => {};', language: 'javascript' };
const on = [{ kind: 'message', schema: 'opened' }];
const source = `export default async (record, fleet) => {
  fleet.log('opened by', record.payload.by);
  await fleet.sendToTag('hall', 'lock_check', { by: record.payload.by });
};
`;

it('an action is tried, deployed, watched, changed, brought back and deleted by commands alone', async () => {
  const code = file('check.mjs', source);
  const record = file('record.json', { device: sensor.deviceId, payload: { by: 'guest' } });
  const test = { record: JSON.parse(readFileSync(record, 'utf8')) };
  const mails = [{ to: lock.deviceId, name: 'lock_check', payload: { by: 'guest' } }];

  const tried = await shown('test', 'check', record, '--file', code, '--on', 'opened');
  expect(tried).toMatchObject({ status: 0, stderr: '' });
  expect(tried.stdout).toContain(`${lock.deviceId}  lock_check`);
  expect(tried.stdout).toMatch(/opened by guest\nIt succeeded: /);
  expect(await mailboxSize(lock)).toBe(0);

  const wrongTest = file('wrong.json', { ...test, mails: [] });
  const failed = await shown('put', 'check', code, '--on', 'opened', '--test', wrongTest);
  expect(failed).toMatchObject({ status: 1, stdout: '' });
  expect(failed.stderr).toMatch(/Test 1 failed/);
  expect((await ask('GET', '')).body.items).toEqual([]);

  const rightTest = file('right.json', [{ ...test, mails }]);
  const where = file('where.json', { required: ['by'] });
  const options = ['--on', 'opened', '--on', 'datapoint:reading', '--where', where, '--test', rightTest];
  const put = await shown('put', 'check', code, ...options, '--runs-per-second', '50');
  expect(put).toMatchObject({ status: 0, stderr: '' });
  expect(put.stdout).toBe('Version 1 of check is deployed.\n1 of 1 tests passed.\n');

  await sensor.request('POST', '/v1/msg/opened', { by: 'guest' });
  await sensor.request('POST', '/v1/msg/opened', { at: 'night' });
  await expect.poll(() => mailboxSize(lock), patience).toBe(1);
  await expect.poll(async () => (await ask('GET', '/check/runs')).body.items.length, patience).toBe(1);
  const [runs, logs] = await Promise.all([
    action('runs', 'check', '--outcome', 'done', '--search', 'OPENED'),
    action('logs', 'check', '--device', sensor.deviceId),
  ]);
  expect(runs.items).toMatchObject([
    { device: sensor.deviceId, name: 'opened', version: 1, outcome: 'done', mails: 1, error: null },
  ]);
  expect(logs.items).toMatchObject([{ device: sensor.deviceId, text: 'opened by guest' }]);
  const others = ['--device', 'NOBODY0001', '--device', sensor.deviceId];
  for (const what of ['logs', 'runs']) {
    expect((await action(what, 'check', ...others)).items).toMatchObject([{ device: sensor.deviceId }]);
  }
  expect((await ask('GET', '/check/runs?outcome=failed')).body.items).toEqual([]);
  expect((await ask('GET', '/check/logs?text=nobody')).body.items).toEqual([]);

  // New code alone: all else stays.
  const second = file('second.ts', `${source}// the second\n`);
  const deployed = await action('put', 'check', second);
  expect(deployed).toMatchObject({
    version: 2,
    language: 'typescript',
    on: [
      { kind: 'message', schema: 'opened' },
      { kind: 'datapoint', schema: 'reading' },
    ],
    filter: { payload: { required: ['by'] } },
    runs_per_second_max: 50,
    tests: [{ test: 1, passed: true, reason: null }],
  });
  const [now, before] = await Promise.all([
    shown('show', 'check', '--source'),
    shown('show', 'check', '--source', '--version', '1'),
  ]);
  expect(now.stdout).toBe(`${source}// the second\n`);
  expect(before.stdout).toBe(source);
  const { versions, ...rolledBack } = await action('rollback', 'check', '1');
  expect(rolledBack).toMatchObject({ version: 1, language: 'javascript' });
  expect(versions.map((one: { version: number }) => one.version)).toEqual([1, 2]);

  expect(await action('put', 'check', code, '--on', 'opened', '--tag', 'hall', '--reset')).toMatchObject({
    version: 3,
    on: [{ kind: 'message', schema: 'opened' }],
    filter: { tags: ['hall'] },
    runs_per_second_max: 1_000,
    tests: [],
  });
  await action('delete', 'check');
  expect((await ask('GET', '/check')).body.error).toBe('action_not_found');
});

it('runs that were given up are read as the device sent them, tried again and thrown away by commands', async () => {
  const broken = "export default () => { throw new TypeError('no such lock'); };";
  const disabled = { source: broken, language: 'javascript', on, enabled: false };
  expect((await ask('PUT', '/broken', disabled)).body).toMatchObject({ enabled: false });
  expect((await ask('PATCH', '/broken', { enabled: true })).body).toMatchObject({ enabled: true });
  const payload = '{"n": 12345678901234567890}';
  for (let n = 0; n < 3; n += 1) await sensor.request('POST', '/v1/msg/opened', payload);
  await expect.poll(async () => (await ask('GET', '/broken')).body.dead_letters, patience).toBe(3);
  const { items } = (await ask('GET', '/broken/dead-letters')).body;
  expect(items).toMatchObject(
    Array(3).fill({ device: sensor.deviceId, kind: 'message', error: { code: 'threw' } }),
  );
  const run = String(items[0].run);
  // A dead letter has the number of the run that it was.
  const ended = await shown('runs', 'broken', run, '--json');
  expect(JSON.parse(ended.stdout)).toMatchObject({ run: items[0].run, outcome: 'dead', sent: [] });
  expect(ended.stdout).toContain(`"payload":${payload}`);
  expect((await shown('runs', 'broken', run)).stdout).toMatch(/error +threw: TypeError: no such lock\n +at /);
  expect((await ask('GET', '/broken/runs/999')).body.error).toBe('run_not_found');
  const one = await shown('dead-letters', 'broken', run, '--json');
  expect(one.stdout).toContain(`"payload":${payload}`);

  const metrics = await (await fetch(`${server.report.admin_url}/metrics`)).text();
  expect(metrics).toContain(`fleetpost_action_dead_letters{fleet="${fleet.fleetId}",action="broken"} 3`);

  const forgotten = await shown('drop', 'broken');
  expect(forgotten).toMatchObject({ status: 1, stdout: '' });
  expect(forgotten.stderr).toMatch(/--all/);
  await ask('PUT', '/broken', good);
  expect(await action('replay', 'broken', run)).toEqual({ replayed: 1 });
  await expect.poll(async () => (await ask('GET', '/broken')).body.dead_letters, patience).toBe(2);
  const unsure = await shown('drop', 'broken', '--all');
  expect(unsure.stderr).toContain('This would drop dead letters: confirm it with --yes');
  const tried = await action('drop', 'broken', '--all', '--dry-run');
  expect(tried).toEqual({
    dry_run: true,
    count: 2,
    first: [expect.stringMatching(/^\d+$/), expect.any(String)],
  });
  expect(await action('drop', 'broken', '--all', '--yes')).toEqual({ dropped: 2 });
  expect((await ask('GET', '/broken/dead-letters')).body).toEqual({ items: [], next: null });
  await ask('DELETE', '/broken');
});

it('action test ends with status 1 and the reason where the run fails', async () => {
  const record = file('other.json', { device: sensor.deviceId, payload: {} });
  const code = file('throws.js', "export default () => { throw new Error('\\u001b[31mred'); };");
  const tried = await shown('test', 'new', record, '--file', code, '--on', 'opened');
  expect(tried.status).toBe(1);
  expect(tried.stdout).toMatch(/It would send no mail.\nIt failed after .*: threw: .*red/);
  expect(tried.stdout).not.toContain('\u001b');
});

const refused: [what: string, method: string, path: string, body: unknown, status: number, error: string][] =
  [
    ['no triggers', 'PUT', '/a', good, 400, 'invalid_action'],
    ['a name that none can have', 'PUT', '/a%2Fb', { ...good, on }, 400, 'bad_request'],
    ['an unknown field', 'PUT', '/a', { ...good, on, of: 1 }, 400, 'invalid_body'],
    ['an unknown language', 'PUT', '/a', { ...good, on, language: 'cobol' }, 400, 'invalid_body'],
    [
      'code that does not compile',
      'PUT',
      '/a',
      { ...good, on, source: 'export default (' },
      400,
      'invalid_action',
    ],
    [
      'code that has no function',
      'PUT',
      '/a',
      { ...good, on, source: '1', force: true },
      400,
      'invalid_action',
    ],
    [
      'a schema of a filter',
      'PUT',
      '/a',
      { ...good, on, filter: { payload: { type: 1 } } },
      400,
      'invalid_action',
    ],
    [
      'a source that is too large',
      'PUT',
      '/a',
      { ...good, on, source: ' '.repeat(262_145) },
      400,
      'invalid_action',
    ],
    ['an action that is not there', 'GET', '/a', undefined, 404, 'action_not_found'],
    ['runs of none', 'GET', '/a/runs', undefined, 404, 'action_not_found'],
    [
      'a record of no device',
      'POST',
      '/kept/test',
      { record: { device: 'x', payload: {} } },
      400,
      'invalid_action',
    ],
    ['a version that is not there', 'GET', '/kept/versions/9', undefined, 404, 'action_version_not_found'],
    ['going back to none', 'POST', '/kept/rollback', { version: 9 }, 404, 'action_version_not_found'],
    [
      'a dead letter that is not there',
      'GET',
      '/kept/dead-letters/9',
      undefined,
      404,
      'dead_letter_not_found',
    ],
    ['replaying none', 'POST', '/kept/dead-letters/9/replay', undefined, 404, 'dead_letter_not_found'],
    ['dropping none', 'DELETE', '/kept/dead-letters/9', undefined, 404, 'dead_letter_not_found'],
    ['a run that is no number', 'GET', '/kept/dead-letters/x', undefined, 400, 'bad_request'],
    ['a rate of nothing', 'PATCH', '/kept', { runs_per_second_max: 0 }, 400, 'invalid_body'],
  ];

it('what cannot be is refused with its code, and nothing comes of it', async () => {
  expect((await ask('PUT', '/kept', { ...good, on })).status).toBe(201);
  expect((await ask('PUT', '/kept', good)).status).toBe(200);
  for (const [what, method, path, body, status, error] of refused) {
    const answer = await ask(method, path, body);
    expect([answer.status, answer.body.error], what).toEqual([status, error]);
    expect(answer.body.msg, what).toMatch(/^[A-Z]/);
  }
  expect((await ask('GET', '')).body.items.map((one: { name: string }) => one.name)).toEqual(['kept']);
  expect((await ask('GET', '/kept')).body).toMatchObject({
    version: 2,
    filter: {},
    held: null,
    dead_letters: 0,
  });
  const other = await server.admin('GET', '/fleets/NOFLEET1/actions');
  expect(other.body).toMatchObject({ error: 'fleet_not_found' });
});

it('the OpenAPI document has every route of actions', async () => {
  const document = (await (await fetch(`${server.report.admin_url}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, object>>;
  };
  const base = '/admin/v1/fleets/{fleet_id}/actions';
  const routes = Object.entries(document.paths)
    .filter(([path]) => path.startsWith(base))
    .map(([path, methods]) => `${Object.keys(methods).sort().join(' ')} ${path.slice(base.length)}`);
  expect(routes.sort()).toEqual(
    [
      'get ',
      'delete get patch put /{name}',
      'get /{name}/versions/{version}',
      'post :check',
      'post /{name}/rollback',
      'post /{name}/test',
      'delete get /{name}/state',
      'delete get put /{name}/state/value',
      'get /{name}/runs',
      'get /{name}/runs/{run}',
      'get /{name}/logs',
      'delete get /{name}/dead-letters',
      'delete get /{name}/dead-letters/{run}',
      'post /{name}/dead-letters/replay',
      'post /{name}/dead-letters/{run}/replay',
    ].sort(),
  );
});

it('an error is told with its lines, each by the file of its action, and in a list by its first', async () => {
  const code = file(
    'whatever.ts',
    `export default (record: { payload: { at: string | null } }) => {
       const at = record.payload.at;
       if (at === 'evil') throw new Error('\\u001b[2J one\\r\\ntwo');
       return at!.length;
     };`,
  );
  const record = file('null.json', { device: sensor.deviceId, payload: { at: null } });
  const tried = await shown('test', 'door-open', record, '--file', code, '--on', 'opened');
  const stack =
    /threw: TypeError: cannot read property 'length' of null\n {4}at \S+ \(door-open\.ts:4:\d+\)\n$/;
  expect(tried.stderr).toBe('');
  expect(tried.stdout).toMatch(stack);
  const tests = file('null-test.json', { record: JSON.parse(readFileSync(record, 'utf8')) });
  const refused = await shown('put', 'door-open', code, '--on', 'opened', '--test', tests);
  expect(refused.stderr).toMatch(
    /Test 1 failed: threw: TypeError: .* of null\n {4}at .*\(door-open\.ts:4:\d+\)\n$/,
  );
  const wrong = file('wrong.ts', 'export default (: number) => {};');
  const uncompiled = await shown('put', 'door-open', wrong, '--on', 'opened');
  expect(uncompiled.stderr).toMatch(/\(door-open\.ts:1:\d+\)\n$/);
  await action('put', 'door-open', code, '--on', 'opened');
  await sensor.request('POST', '/v1/msg/opened', { at: null });
  await sensor.request('POST', '/v1/msg/opened', { at: 'evil' });
  await expect.poll(async () => (await ask('GET', '/door-open')).body.dead_letters, patience).toBe(2);
  const [evil, first] = (await ask('GET', '/door-open/dead-letters')).body.items;
  expect(evil.error.msg).toMatch(/^Error: \\u\{1b\}\[2J one\\r\ntwo\n {4}at /);
  const listed = await shown('runs', 'door-open');
  expect(listed.stdout).toMatch(/threw: TypeError: cannot read property 'length' of null\n/);
  for (const character of ['\u{fffd}', '\u{1b}', '\r']) expect(listed.stdout).not.toContain(character);
  const detail = await shown('dead-letters', 'door-open', String(first.run));
  expect(detail.stdout).toMatch(/error +threw: TypeError: .* of null\n +at \S+ \(door-open\.ts:4:\d+\)\n/);
  await action('delete', 'door-open');
});

it('how an action fails stands where one looks at it, until a run succeeds or another version is deployed', async () => {
  const code = file(
    'checked.ts',
    `export default (record: { payload: { at: string | null } }) => {
       return record.payload.at!.length;
     };`,
  );
  await action('put', 'checked', code, '--on', 'opened');
  const status = async () => (await ask('GET', '/checked')).body;
  const none = { failures: 0, last_error: null, last_failed_at: null };
  expect(await status()).toMatchObject(none);
  for (const _ of [1, 2]) await sensor.request('POST', '/v1/msg/opened', { at: null });
  await expect.poll(async () => (await status()).failures, patience).toBeGreaterThanOrEqual(2);
  const { last_error: lastError, last_failed_at: failedAt } = await status();
  expect(lastError).toMatchObject({ code: 'threw', msg: expect.stringContaining('(checked.ts:2:') });
  expect(Date.now() - Date.parse(failedAt)).toBeLessThan(60_000);
  expect((await action('list')).items).toContainEqual(
    expect.objectContaining({ name: 'checked', last_error: lastError }),
  );
  expect((await shown('list')).stdout).toMatch(
    /checked .* threw: TypeError: cannot read property 'length' of null\n/,
  );
  expect((await shown('show', 'checked')).stdout).toMatch(
    /last_error +threw: .* of null\n +at \S+ \(checked\.ts:2:\d+\)\n/,
  );
  await lock.request('POST', '/v1/msg/opened', { at: 'front' });
  await expect
    .poll(async () => (await action('runs', 'checked', '--outcome', 'done')).items, patience)
    .toHaveLength(1);
  expect(await status()).toMatchObject({ last_error: lastError });
  await action('put', 'checked', file('mended.js', 'export default () => {};'));
  expect(await status()).toMatchObject(none);
});
