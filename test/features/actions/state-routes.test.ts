import { beforeAll, expect, it } from 'vitest';
import { anyObject, createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { auditEntries } from '../../harness/features/audit.ts';
import { fleetpost } from '../../harness/server/command.ts';
import { TestServer } from '../../harness/server/server.ts';

const patience = { timeout: 60_000, interval: 50 };
let server: TestServer;
let fleet: TestFleet;
let sensor: TestDevice;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
  await fleet.putSchema('message', 'warm', anyObject);
  sensor = await fleet.createDevice();
});

/** Runs the command and returns what a person sees. */
const state = (...args: string[]) =>
  fleetpost(['action', 'state', ...args, '--fleet', fleet.fleetId, '--data', server.report.data]);

// biome-ignore lint/suspicious/noExplicitAny: a test asserts what it finds
async function ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: any }> {
  return server.admin(method, `/fleets/${fleet.fleetId}/actions${path}`, body);
}

async function put(name: string, source: string): Promise<void> {
  const on = [{ kind: 'message', schema: 'warm' }];
  const { status } = await ask('PUT', `/${name}`, { source, language: 'javascript', on });
  expect(status).toBe(201);
}

it('the state of an action is listed, read, set and deleted by commands', async () => {
  await put(
    'kept',
    `export default async (record, fleet) => {
       const count = (await fleet.state.get('count')) ?? 0;
       await fleet.state.set('count', count + 1);
     };`,
  );
  expect((await state('list', 'kept')).stdout).toBe('The state is empty.\n');
  expect((await state('set', 'kept', 'count', '41')).stdout).toBe('count is set to 41.\n');
  await sensor.request('POST', '/v1/msg/warm', {});
  await expect.poll(async () => (await state('get', 'kept', 'count')).stdout, patience).toBe('42\n');
  expect((await state('set', 'kept', '..', '{"a": ["é"]}')).status).toBe(0);
  expect((await state('set', 'kept', 'é/ü', '"text"')).status).toBe(0);
  expect((await state('list', 'kept')).stdout).toMatch(
    /^key +value\n\.\. +{"a":\["é"\]}\ncount +42\né\/ü +"text"\n$/,
  );
  expect((await state('delete', 'kept', '..')).stdout).toBe('Deleted 1 key.\n');
  const gone = await state('get', 'kept', '..');
  expect(gone).toMatchObject({ status: 1, stdout: '' });
  expect(gone.stderr).toContain('no such key');
  expect((await state('delete', 'kept')).stderr).toContain('--all');
  expect((await state('set', 'kept', 'a', 'open')).stderr).toContain('not JSON');
  expect((await state('delete', 'kept', '--all')).stdout).toBe('Deleted 2 keys.\n');
  expect((await ask('GET', '/kept/state')).body).toEqual({ items: [], next: null });
});

it('a state comes in pages, by its keys, and none is of another action', async () => {
  await put('paged', 'export default () => {};');
  await put('other', 'export default () => {};');
  await ask('PUT', '/other/state/value?key=x', { value: 1 });
  for (const key of ['b', 'a', 'ab', 'c']) await ask('PUT', `/paged/state/value?key=${key}`, { value: key });
  const first = (await ask('GET', '/paged/state?limit=2')).body;
  expect(first).toEqual({
    items: [
      { key: 'a', value: 'a' },
      { key: 'ab', value: 'ab' },
    ],
    next: expect.any(String),
  });
  const second = (await ask('GET', `/paged/state?limit=2&after=${first.next}`)).body;
  expect(second.items.map(({ key }: { key: string }) => key)).toEqual(['b', 'c']);
  expect(second.next).toBeNull();
  expect((await ask('DELETE', '/paged/state')).body).toEqual({ deleted: 4 });
  expect((await ask('GET', '/other/state')).body.items).toEqual([{ key: 'x', value: 1 }]);
});

it('a run under way that has read a key starts over where an operator sets it', async () => {
  await put(
    'slow',
    `export default async (record, fleet) => {
       const count = (await fleet.state.get('count')) ?? 0;
       const end = Date.now() + 300;
       while (Date.now() < end) {}
       await fleet.state.set('count', count + 1);
     };`,
  );
  let runs = 0;
  const setAmidRun = async (): Promise<unknown> => {
    await sensor.request('POST', '/v1/msg/warm', {});
    await expect.poll(async () => (await ask('GET', '/slow')).body.in_hand, patience).toBe(1);
    await ask('PUT', '/slow/state/value?key=count', { value: 100 });
    runs += 1;
    await expect.poll(async () => (await ask('GET', '/slow/runs')).body.items.length, patience).toBe(runs);
    return (await ask('GET', '/slow/state/value?key=count')).body.value;
  };
  // 100 where a busy machine had the run be over before.
  await expect.poll(setAmidRun, patience).toBe(101);
});

it('what no state takes is refused, and each change is in the audit log', async () => {
  await put('bounded', 'export default () => {};');
  const set = (key: string, value: unknown) =>
    ask('PUT', `/bounded/state/value?key=${encodeURIComponent(key)}`, { value });
  expect((await set('a', 'x'.repeat(4_095))).body.msg).toContain('actionStateValueBytesMax');
  expect((await set('a', null)).body).toMatchObject({ error: 'invalid_body' });
  expect((await set('', 1)).status).toBe(400);
  expect((await set('k'.repeat(129), 1)).status).toBe(400);
  expect((await ask('PUT', '/bounded/state/value?key=a', {})).body.error).toBe('invalid_body');
  expect((await ask('DELETE', '/bounded/state/value')).status).toBe(400);
  expect((await ask('DELETE', '/bounded/state/value?key=a')).body.error).toBe('state_key_not_found');
  expect((await ask('GET', '/nobody/state')).body.error).toBe('action_not_found');
  expect((await set('door', 1)).status).toBe(200);
  await ask('DELETE', '/bounded/state');
  const entries = await auditEntries(server, `&fleet=${fleet.fleetId}`);
  const about = entries.filter(({ route }) => route.includes('/state')).map((entry) => entry.about);
  expect(about.slice(0, 2)).toEqual([
    expect.objectContaining({ name: 'bounded', deleted: 1 }),
    expect.objectContaining({ name: 'bounded', key: 'door' }),
  ]);
});
