import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { type ReceivedBatch, Receiver } from '../../harness/features/receiver.ts';
import { TestServer } from '../../harness/server/server.ts';

const patience = { timeout: 60_000, interval: 50 };

interface Page {
  items?: unknown[];
  next: string | null;
}
interface Operation {
  summary?: string;
  parameters?: { name: string; in: string; required?: boolean; schema: { default?: unknown } }[];
  requestBody?: { content: Record<string, { schema: { properties?: Record<string, unknown> } }> };
  responses: Record<string, { content?: Record<string, { schema: { properties?: object } }> }>;
}
type Document = { paths: Record<string, Record<string, Operation>> };

/** A list as it is asked for: in a query, or in a body where there is one. */
interface Asked {
  path: string;
  query: Record<string, string>;
  body?: Record<string, unknown>;
}

/** For each filter a value that another list has: whatever the document can be asked for stands here. */
const others: Record<string, string> = {
  tag: 'g4',
  id_prefix: 'DEVICE',
  name_prefix: 'm',
  enabled: 'true',
  state: 'offline',
  seen_after: '2020-01-01T00:00:00Z',
  seen_before: '2099-01-01T00:00:00Z',
  silent_after: '2020-01-01T00:00:00Z',
  refused: 'any',
  waiting_before: '2099-01-01T00:00:00Z',
  device_id: 'NODEVICE00',
  device: 'NODEVICE00',
  address: '192.0.2.1',
  name: 'other',
  reason: 'expired',
  order: 'oldest',
  from: '2020-01-01T00:00:00Z',
  to: '2099-01-01T00:00:00Z',
  token: 'bootstrap',
  outcome: 'dead',
  book: 'traffic',
  about: 'other',
  text: 'a',
  run: '1',
};

/** Likewise, where a filter of that name means something else. */
const othersOf: Readonly<Record<string, Record<string, string>>> = {
  'get /admin/v1/fleets/{fleet_id}/broadcasts/{broadcast_id}/mails': { state: 'acked' },
  'get /admin/v1/fleets/{fleet_id}/devices': { ...others, order: 'seen' },
};

let server: TestServer;
let receiver: Receiver;
let document: Document;
let fleet: TestFleet;
let other: TestFleet;
/** Lists by operation of the document. */
let lists: Record<string, Asked>;

interface Filled {
  deviceId: string;
  /** A broadcast that was refused to each device, and one that was put into their mailboxes. */
  broadcastId: string;
  sentId: string;
}

/** A fleet that has at least three of whatever is listed, and a cursor of each list. */
async function fill(filled: TestFleet): Promise<Filled> {
  const devices = await Promise.all(
    ['n1', 'n2', 'n3'].map((name, at) =>
      filled.createDevice({ device_id: `DEVICE000${at}`, name, tags: ['g3', 'g4'] }),
    ),
  );
  const [device] = devices;
  if (device === undefined) throw new Error('there are three');
  await filled.putSchema('message', 'opened', { type: 'object' });
  const failing = `export default (r, f) => { f.log('a'); f.log('b'); throw new Error('no'); }`;
  expect((await filled.putAction('act', failing)).status).toBe(201);
  for (const key of ['k1', 'k2', 'k3']) {
    const path = `/fleets/${filled.fleetId}/actions/act/state/value?key=${key}`;
    expect((await server.admin('PUT', path, { value: 1 })).status).toBe(200);
  }
  const hook = { type: 'webhook', url: receiver.url, tls: { ca: receiver.ca } };
  const put = await server.admin('PUT', `/fleets/${filled.fleetId}/forwarders/hook`, hook);
  expect(put, JSON.stringify(put.body)).toMatchObject({ status: 201 });
  for (let n = 0; n < 3; n += 1)
    expect((await device.request('POST', '/v1/msg/opened', {})).status).toBe(201);
  for (let n = 0; n < 12; n += 1) {
    const { mailId } = await device.sendMail();
    if (n < 9) expect((await device.settle('reject', mailId)).status).toBe(200);
  }
  for (const id of ['NODEVICE00', 'NODEVICE01', 'NODEVICE02']) {
    const unknown = new TestDevice(server, filled.fleetId, id, device.secret);
    expect((await unknown.heartbeat()).status).toBe(401);
  }
  const claim = { devices_max: 1 };
  for (let n = 0; n < 3; n += 1) await server.admin('POST', `/fleets/${filled.fleetId}/claim-tokens`, claim);
  const to = { devices: ['NODEVICE00', 'NODEVICE01', 'NODEVICE02'] };
  let broadcastId = '';
  for (let n = 0; n < 3; n += 1) {
    const path = `/fleets/${filled.fleetId}/broadcasts`;
    const { status, body } = await server.admin('POST', path, { name: 'note', to });
    expect(status).toBe(202);
    broadcastId = String(body.broadcast_id);
  }
  const { body } = await server.admin('POST', `/fleets/${filled.fleetId}/broadcasts`, {
    name: 'note',
    to: { all: true },
  });
  return { deviceId: device.deviceId, broadcastId, sentId: String(body.broadcast_id) };
}

function listsOf({ fleetId }: TestFleet, { deviceId, broadcastId, sentId }: Filled) {
  const root = '/admin/v1';
  const of = `${root}/fleets/{fleet_id}`;
  const at = `/fleets/${fleetId}`;
  const asked = (path: string, query: Record<string, string> = {}): Asked => ({ path, query });
  const change = { add_tags: ['seen'] };
  return {
    [`get ${root}/fleets`]: asked('/fleets'),
    [`get ${root}/tokens`]: asked('/tokens'),
    [`get ${root}/audit`]: asked('/audit', { fleet: fleetId }),
    [`get ${root}/lockouts`]: asked('/lockouts', { fleet_id: fleetId }),
    [`get ${of}/devices`]: asked(`${at}/devices`, { tag: 'g3', name_prefix: 'n' }),
    [`get ${of}/devices:count`]: asked(`${at}/devices:count`, { tag: 'g3', name_prefix: 'n' }),
    [`get ${of}/devices/{device_id}/mail`]: asked(`${at}/devices/${deviceId}/mail`),
    [`get ${of}/dead-letters`]: asked(`${at}/dead-letters`),
    [`get ${of}/claim-tokens`]: asked(`${at}/claim-tokens`),
    [`get ${of}/broadcasts`]: asked(`${at}/broadcasts`),
    [`get ${of}/broadcasts/{broadcast_id}/refusals`]: asked(`${at}/broadcasts/${broadcastId}/refusals`),
    [`get ${of}/broadcasts/{broadcast_id}/mails`]: asked(`${at}/broadcasts/${sentId}/mails`, {
      state: 'queued',
    }),
    [`get ${of}/actions/{name}/runs`]: asked(`${at}/actions/act/runs`),
    [`get ${of}/actions/{name}/logs`]: asked(`${at}/actions/act/logs`),
    [`get ${of}/actions/{name}/state`]: asked(`${at}/actions/act/state`),
    [`get ${of}/actions/{name}/dead-letters`]: asked(`${at}/actions/act/dead-letters`),
    [`get ${of}/forwarders/{name}/dead-letters`]: asked(`${at}/forwarders/hook/dead-letters`),
    [`post ${of}/devices:change`]: {
      ...asked(`${at}/devices:change`),
      body: { select: { tag: 'g3' }, change },
    },
    [`post ${of}/dead-letters:replay`]: { ...asked(`${at}/dead-letters:replay`), body: { filter: {} } },
    [`post ${of}/dead-letters:drop`]: { ...asked(`${at}/dead-letters:drop`), body: { filter: {} } },
  };
}

async function page(operation: string, { path, query, body }: Asked, after?: string) {
  const more = { limit: 1, ...(after !== undefined && { after }) };
  const method = operation.split(' ')[0]?.toUpperCase() ?? '';
  if (body !== undefined) return server.admin<Page>(method, path, { ...body, ...more });
  const asked = new URLSearchParams({ ...query, ...more, limit: '1' });
  return server.admin<Page>(method, `${path}?${asked}`);
}

/** The cursor of a second page, once there is one. */
async function nextOf(operation: string, asked: Asked): Promise<string> {
  let next: string | null = null;
  await expect
    .poll(async () => {
      const answer = await page(operation, asked);
      expect(answer.status, `${operation}: ${JSON.stringify(answer.body)}`).toBe(200);
      next = answer.body.next;
      return next;
    }, patience)
    .toEqual(expect.any(String));
  return String(next);
}

async function expectRefused(operation: string, asked: Asked, after: string, why: string): Promise<void> {
  const { status, body } = await page(operation, asked, after);
  expect({ status, body }, `${operation}: ${why}`).toEqual({
    status: 400,
    body: { error: 'bad_request', msg: expect.stringMatching(/^`after` is not a `next` of this list/) },
  });
}

beforeAll(async () => {
  receiver = await Receiver.start();
  receiver.react = (_: ReceivedBatch) => ({ status: 400 });
  // One of its own, on which addresses are locked out.
  server = await TestServer.start({
    activityFlushSeconds: 1,
    actionAttemptsMax: 1,
    unauthorizedMax: 1,
    unauthorizedWindowSeconds: 3_600,
    lockoutSecondsMax: 3_600,
  });
  document = (await (await fetch(`${server.report.admin_url}/openapi.json`)).json()) as Document;
  fleet = await createFleet(server);
  other = await createFleet(server);
  for (let n = 0; n < 3; n += 1) await server.admin('POST', '/tokens', { name: 'a', scopes: ['read'] });
  await fill(other);
  lists = listsOf(fleet, await fill(fleet));
});
afterAll(async () => {
  await receiver.close();
  await server[Symbol.asyncDispose]();
});

const operations = (): [string, Operation][] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Operation] => [
      `${method} ${path}`,
      operation,
    ]),
  );
const queryOf = ({ parameters = [] }: Operation): string[] =>
  parameters.filter((one) => one.in === 'query').map(({ name }) => name);
const bodyOf = ({ requestBody }: Operation): string[] =>
  Object.keys(requestBody?.content['application/json']?.schema.properties ?? {});

describe('a cursor belongs to its list', () => {
  it('each list of the document that is answered a page at a time is one of those here', () => {
    const paged = operations().filter(
      ([, operation]) =>
        [...queryOf(operation), ...bodyOf(operation)].includes('after') &&
        'next' in (operation.responses[200]?.content?.['application/json']?.schema.properties ?? {}),
    );
    expect(paged.map(([name]) => name).sort()).toEqual(Object.keys(lists).sort());
  });

  it('goes on with it, and is refused by every other list, of another fleet too', async () => {
    const cursors = new Map<string, string>();
    for (const [operation, asked] of Object.entries(lists))
      cursors.set(operation, await nextOf(operation, asked));
    for (const [operation, asked] of Object.entries(lists)) {
      for (const [from, cursor] of cursors) {
        if (from === operation) continue;
        await expectRefused(operation, asked, cursor, `the cursor of ${from}`);
      }
      for (const [why, cursor] of Object.entries({
        'of nothing': 'A',
        'what it was without a list': 'DEVICE0001',
        'too long': 'A'.repeat(2_000),
      }))
        await expectRefused(operation, asked, cursor, why);
      const elsewhere = { ...asked, path: asked.path.replace(fleet.fleetId, other.fleetId) };
      if (elsewhere.path !== asked.path)
        await expectRefused(operation, elsewhere, cursors.get(operation) ?? '', 'another fleet');
      const own = await page(operation, asked, cursors.get(operation));
      expect(own.status, `${operation}: ${JSON.stringify(own.body)}`).toBe(200);
    }
  });

  it('is refused with another filter, or another value of one', async () => {
    let refused = 0;
    for (const [name, operation] of operations()) {
      const asked = lists[name];
      if (asked === undefined) continue;
      const cursor = await nextOf(name, asked);
      const filters = queryOf(operation).filter((one) => one !== 'after' && one !== 'limit');
      for (const filter of filters) {
        const value = ['fleet', 'fleet_id'].includes(filter)
          ? other.fleetId
          : (othersOf[name] ?? others)[filter];
        expect(value, `a value for ${filter}`).toBeDefined();
        const query = { ...asked.query, [filter]: value ?? '' };
        await expectRefused(name, { ...asked, query }, cursor, `another ${filter}`);
        refused += 1;
      }
      for (const filter of Object.keys(asked.query)) {
        const { [filter]: _, ...query } = asked.query;
        await expectRefused(name, { ...asked, query }, cursor, `without ${filter}`);
      }
    }
    expect(refused).toBeGreaterThan(20);
    const change = `post /admin/v1/fleets/{fleet_id}/devices:change`;
    const asked = lists[change] as Asked;
    const cursor = await nextOf(change, asked);
    for (const body of [
      { ...asked.body, select: { tag: 'g4' } },
      { ...asked.body, select: { all: true } },
    ])
      await expectRefused(change, { ...asked, body }, cursor, 'another selection');
  });

  it('stands for the list and not for how it is written: the order of filters, and the length of pages', async () => {
    const path = `/fleets/${fleet.fleetId}/devices`;
    const first = await server.admin<Page>('GET', `${path}?tag=g3&name_prefix=n&limit=1`);
    const rest = await server.admin<Page>(
      'GET',
      `${path}?limit=9&name_prefix=n&tag=g3&after=${first.body.next}`,
    );
    expect([rest.status, rest.body.items?.length, rest.body.next]).toEqual([200, 2, null]);
  });

  it('an export of some devices cannot be gone on with, which is in another order than that of ids', async () => {
    const path = `/admin/v1/fleets/${fleet.fleetId}/devices:export`;
    const headers = { authorization: `Bearer ${server.token}` };
    const ask = async (query: string): Promise<Response> =>
      fetch(`${server.report.admin_url}${path}?${query}`, { headers });
    const rest = await (await ask('after=DEVICE0000')).text();
    expect(rest.trimEnd().split('\n')).toHaveLength(2);
    const refused = await ask('after=DEVICE0000&tag=g3');
    expect([refused.status, ((await refused.json()) as { error: string }).error]).toEqual([
      400,
      'bad_request',
    ]);
  });
});

describe('the OpenAPI document', () => {
  it('requires no parameter that has a default', () => {
    const required = operations().flatMap(([name, { parameters = [] }]) =>
      parameters
        .filter(({ required, schema }) => required === true && schema.default !== undefined)
        .map((parameter) => `${name}: ${parameter.name}`),
    );
    expect(required).toEqual([]);
    const withDefault = operations().flatMap(([, { parameters = [] }]) =>
      parameters.filter(({ schema }) => schema.default !== undefined),
    );
    expect(withDefault.length).toBeGreaterThan(15);
  });

  it('says of every operation in a few words what it does', () => {
    for (const [name, { summary = '' }] of operations()) expect(summary, name).toMatch(/^[A-Z][^.\n]{4,70}$/);
    const summaries = operations().map(([, { summary }]) => summary);
    expect(new Set(summaries).size).toBe(summaries.length);
  });
});
