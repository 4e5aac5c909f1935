/** Broadcasts through the admin API, and their mail. */

import { uuidv7 } from 'uuidv7';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { BroadcastMailDocument } from '../../../src/contract/broadcast.ts';
import type { ListDocument } from '../../../src/contract/document.ts';
import { createFleet, TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { expectError } from '../../harness/devices/routes.ts';
import { Broadcasts, importDevices, mailboxSizes } from '../../harness/features/broadcast.ts';
import { TestServer } from '../../harness/server/server.ts';

let server: TestServer;
let fleet: TestFleet;
let broadcasts: Broadcasts;

beforeAll(async () => {
  server = await TestServer.start({
    broadcastMailsPerSecondMax: 1_000,
    broadcastDevicesMax: 200,
    broadcastRefusalsMax: 3,
    broadcastsPerFleetMax: 3,
    broadcastsRunningMax: 6,
  });
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(async () => {
  fleet = await createFleet(server);
  broadcasts = new Broadcasts(fleet);
});

/** Posts, and returns the answer as it came: status, headers and body. */
async function post(path: string, body: object | string, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.report.admin_url}/admin/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return {
    status: response.status,
    text,
    json: JSON.parse(text),
    replayed: response.headers.get('idempotent-replayed'),
  };
}

const distinct = (sizes: Map<string, number>): number[] => [...new Set(sizes.values())];

it('a list gets it once each, and its sender is told of every device that does not, and why', async () => {
  const [first, second, full] = [
    await fleet.createDevice(),
    await fleet.createDevice(),
    await fleet.createDevice(),
  ];
  const ids = [first, second, full].map(({ deviceId }) => deviceId);
  await full.sendMail();
  const devices = [...ids, 'NOBODY0001', first.deviceId];
  const put = await broadcasts.put({
    name: 'note',
    payload: { a: 1 },
    to: { devices },
    mailbox_mails_max: 1,
  });
  expect(put).toMatchObject({ state: 'running', devices: 4, to: { devices: 4 }, queued: 0, ended_at: null });
  const done = await broadcasts.done(put.broadcast_id);
  expect(done).toMatchObject({ devices: 4, queued: 2, refused: 2, ended_at: expect.stringMatching(/Z$/) });
  expect(done).toMatchObject({ reasons: { mailbox_full: 1, device_not_found: 1 } });
  expect(await broadcasts.refusals(put.broadcast_id)).toEqual(
    [
      { device_id: full.deviceId, name: '', reason: 'mailbox_full' },
      { device_id: 'NOBODY0001', name: null, reason: 'device_not_found' },
    ].sort((a, b) => (a.device_id < b.device_id ? -1 : 1)),
  );
  expect(await first.mails()).toMatchObject([{ name: 'note', payload: { a: 1 } }]);
  expect(await second.mails()).toHaveLength(1);
});

it('D11: the payload arrives byte for byte as it stands in the document', async () => {
  const device = await fleet.createDevice();
  const payload = '{ "n" : 1.0e2,"big":12345678901234567890,"s":"\\u0041\\"}{","z":[1,{"y":[]}] }';
  const body = `{"payload":{"old":1},"to":{"all":true}, "\\u0070ayload" :\n${payload} ,"name":"note"}`;
  await broadcasts.done((await broadcasts.put(body)).broadcast_id);
  expect((await device.next()).text).toBe(payload);
});

it('a tag, and a whole fleet, get it once each: also those that are disabled', async () => {
  const tagged = await importDevices(fleet, { count: 70, tags: ['hall'] });
  await importDevices(fleet, { count: 400 });
  await server.admin('PATCH', `/fleets/${fleet.fleetId}/devices/${tagged[0]}`, { enabled: false });
  const byTag = await broadcasts.put({ name: 'note', to: { tag: 'hall' } });
  expect(await broadcasts.done(byTag.broadcast_id)).toMatchObject({ devices: 70, queued: 70, refused: 0 });
  const sizes = await mailboxSizes(fleet);
  expect([...sizes].filter(([, size]) => size === 1).map(([id]) => id)).toEqual(tagged);
  const toAll = await broadcasts.put({ name: 'note', to: { all: true } });
  expect(await broadcasts.done(toAll.broadcast_id)).toMatchObject({ devices: 470, queued: 470 });
  for (const [id, size] of await mailboxSizes(fleet)) expect(size).toBe(tagged.includes(id) ? 2 : 1);
  const metrics = await (await fetch(`${server.report.admin_url}/metrics`)).text();
  expect(metrics).toMatch(/fleetpost_broadcast_mails_total\{outcome="queued"\} \d+/);
});

it('several tags: only the devices that have all of them get it', async () => {
  await importDevices(fleet, { count: 300, tags: ['hall'] });
  const both = await importDevices(fleet, { count: 3, tags: ['lamp', 'hall'] });
  await importDevices(fleet, { count: 2, tags: ['lamp'] });
  const put = await broadcasts.put({ name: 'note', to: { tag: ['hall', 'lamp'] } });
  expect(put.to).toEqual({ tag: ['hall', 'lamp'] });
  expect(await broadcasts.done(put.broadcast_id)).toMatchObject({ devices: 3, queued: 3 });
  const reached = [...(await mailboxSizes(fleet))].filter(([, size]) => size > 0).map(([id]) => id);
  expect(reached).toEqual(both);
});

it('any filters of a list: only the devices that match all of them when their turn comes get it', async () => {
  await importDevices(fleet, { count: 600, tags: ['hall'] });
  const make = (id: string, enabled = true) =>
    fleet.createDevice({ device_id: id, name: `Lamp ${id}`, tags: ['hall'] }).then(async (device) => {
      if (!enabled) await server.admin('PATCH', device.adminPath, { enabled });
      return device;
    });
  const [on, off, other] = [
    await make('zzLAMP0001'),
    await make('zzLAMP0002', false),
    await make('zyLAMP0001'),
  ];
  await other.sendMail();
  const reachedBy = async (to: object): Promise<string[]> => {
    const before = await mailboxSizes(fleet);
    const put = await broadcasts.put({ name: 'note', to });
    expect(put.to).toEqual(to);
    const after = await broadcasts.done(put.broadcast_id).then(() => mailboxSizes(fleet));
    return [...after].filter(([id, size]) => size > (before.get(id) ?? 0)).map(([id]) => id);
  };
  expect(await reachedBy({ tag: ['hall'], id_prefix: 'zz', enabled: true })).toEqual([on.deviceId]);
  expect(await reachedBy({ enabled: false, name_prefix: 'lamp zz' })).toEqual([off.deviceId]);
  expect(await reachedBy({ name_prefix: 'LAMP', state: 'offline' })).toHaveLength(3);
  expect(await reachedBy({ state: 'connected' })).toEqual([]);
  const time = new Date(Date.now() + 60_000).toISOString();
  expect(await reachedBy({ id_prefix: 'zy', waiting_before: time, seen_before: time })).toEqual([
    other.deviceId,
  ]);
  for (const to of [
    {},
    { all: true, tag: 'hall' },
    { devices: [on.deviceId], tag: 'hall' },
    { tags: ['hall'] },
  ]) {
    const refused = await post(broadcasts.path, { name: 'note', to });
    expect([refused.status, refused.json.error], JSON.stringify(to)).toEqual([400, 'invalid_body']);
  }
});

it('to the first few, it pauses after them; resumed, the others get it, and each of them once', async () => {
  await importDevices(fleet, { count: 40 });
  const put = await broadcasts.put({ name: 'note', payload: { n: 1.5 }, to: { all: true }, pause_after: 7 });
  const read = () => broadcasts.get(put.broadcast_id);
  await expect.poll(read).toMatchObject({ state: 'paused', queued: 7, pause_after: 7 });
  expect([...(await mailboxSizes(fleet)).values()].filter((size) => size > 0)).toHaveLength(7);
  await broadcasts.change(put.broadcast_id, 'resume');
  expect(await broadcasts.done(put.broadcast_id)).toMatchObject({ devices: 40, queued: 40 });
  expect(distinct(await mailboxSizes(fleet))).toEqual([1]);
  const payload = await server.admin('GET', `${broadcasts.path}/${put.broadcast_id}/payload`);
  expect(payload.body).toEqual({ n: 1.5 });
  // With no others there is nothing to wait for.
  const toFew = await broadcasts.put({ name: 'note', to: { all: true }, pause_after: 41 });
  expect(await broadcasts.done(toFew.broadcast_id)).toMatchObject({ queued: 40 });
});

it('delayed, no mailbox has it before its time', async () => {
  const device = await fleet.createDevice();
  const deliverAt = new Date(Date.now() + 2_000).toISOString();
  const put = await broadcasts.put({
    name: 'note',
    to: { all: true },
    deliver_at: deliverAt,
    requeues_max: 2,
  });
  expect(put).toMatchObject({ deliver_at: deliverAt, requeues_max: 2 });
  expect(await broadcasts.done(put.broadcast_id)).toMatchObject({ queued: 1 });
  const mails = await device.mails();
  expect(mails.length === 0 || Date.now() >= Date.parse(deliverAt)).toBe(true);
  await expect.poll(() => device.mails()).toHaveLength(1);
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(deliverAt));
});

it('D31: the newest of its key alone waits, and the outcomes of the older one say so', async () => {
  const [asleep, awake] = [await fleet.createDevice(), await fleet.createDevice()];
  const send = async (n: number) => {
    const to = { devices: [asleep.deviceId, awake.deviceId] };
    const put = await broadcasts.put({ name: 'set', payload: { n }, to, replace_key: 'set-point' });
    expect(put).toMatchObject({ replace_key: 'set-point' });
    expect(await broadcasts.done(put.broadcast_id)).toMatchObject({ queued: 2, refused: 0 });
    return `${broadcasts.path}/${put.broadcast_id}/outcomes`;
  };
  const first = await send(1);
  expect((await awake.next()).json).toEqual({ n: 1 });
  await send(2);
  expect((await server.admin('GET', first)).body).toMatchObject({ replaced: 1, queued: 1 });
  expect((await asleep.mails()).map(({ payload }) => payload)).toEqual([{ n: 2 }]);
  expect((await awake.mails()).map(({ payload }) => payload)).toEqual([{ n: 1 }, { n: 2 }]);
});

it('paused, nothing more is sent until it is resumed; cancelled, nothing ever', async () => {
  const devices = await importDevices(fleet, { count: 1_500 });
  const { broadcast_id: id } = await broadcasts.put({ name: 'note', to: { all: true } });
  await broadcasts.sent(id, 1);
  const paused = await broadcasts.change(id, 'pause');
  expect(paused).toMatchObject({ status: 200, body: { state: 'paused' } });
  const before = await mailboxSizes(fleet);
  const sent = [...before.values()].filter((size) => size === 1).length;
  expect(sent).toBeLessThan(devices.length);
  // To the mail, though it stopped in the midst of a chunk.
  expect(paused.body.queued).toBe(sent);
  // Another is not held up by it, and is not sent to its devices a second time.
  const other = await broadcasts.put({ name: 'note', to: { devices: devices.slice(0, 1) } });
  await broadcasts.done(other.broadcast_id);
  const meanwhile = await mailboxSizes(fleet);
  expect(meanwhile.get(devices[0] ?? '')).toBe((before.get(devices[0] ?? '') ?? 0) + 1);
  expect([...meanwhile.values()].reduce((sum, size) => sum + size, 0)).toBe(sent + 1);

  expect(await broadcasts.change(id, 'resume')).toMatchObject({ status: 200, body: { state: 'running' } });
  await broadcasts.sent(id, sent + 1);
  await broadcasts.change(id, 'pause');
  const cancelled = await broadcasts.change(id, 'cancel');
  expect(cancelled).toMatchObject({ status: 200, body: { state: 'cancelled' } });
  const { queued } = cancelled.body;
  const total = async () => [...(await mailboxSizes(fleet)).values()].reduce((sum, size) => sum + size, 0);
  expect(await total()).toBe(queued + 1);
  expect(queued).toBeLessThan(devices.length);
  expect(await broadcasts.change(id, 'cancel')).toMatchObject({ status: 200 });
  expect(await broadcasts.change(id, 'resume')).toMatchObject({
    status: 409,
    body: { error: 'broadcast_ended' },
  });
  expect(await total()).toBe(queued + 1);
});

it('D12: a mail schema holds for the payload when it is put', async () => {
  await fleet.putSchema('mail', 'note', { type: 'object', required: ['n'] });
  const refused = await post(broadcasts.path, { name: 'note', payload: { m: 1 }, to: { all: true } });
  expectError(refused, 400, 'schema_mismatch', { errors: expect.anything() });
  expect((await server.admin('GET', broadcasts.path)).body).toEqual({ items: [], next: null });
});

it('D18: the same key with the same request is the same broadcast; with another it is refused', async () => {
  await fleet.createDevice();
  const headers = { 'Idempotency-Key': uuidv7() };
  const body = { name: 'note', payload: { n: 1 }, to: { all: true } };
  const answers = await Promise.all(Array.from({ length: 4 }, () => post(broadcasts.path, body, headers)));
  expect(new Set(answers.map(({ json }) => json.broadcast_id)).size).toBe(1);
  expect(answers.filter(({ replayed }) => replayed === 'true')).toHaveLength(3);
  const other = await post(broadcasts.path, { ...body, payload: { n: 2 } }, headers);
  expectError(other, 400, 'idempotency_key_reused');
  expectError(await post(broadcasts.path, body, { 'Idempotency-Key': 'x' }), 400, 'invalid_idempotency_key');
  await broadcasts.done(answers[0]?.json.broadcast_id);
  expect(distinct(await mailboxSizes(fleet))).toEqual([1]);
});

it('D18: a single mail with a key is queued once, however often it is sent', async () => {
  const device = await fleet.createDevice();
  const headers = { 'Idempotency-Key': uuidv7() };
  const path = `${device.adminPath}/mail/note?ttl_seconds=60`;
  const answers = await Promise.all(Array.from({ length: 4 }, () => post(path, { n: 1 }, headers)));
  expect(new Set(answers.map(({ json }) => json.mail_id)).size).toBe(1);
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
  expect(answers.filter(({ replayed }) => replayed === 'true')).toHaveLength(3);
  for (const [changed, payload] of [
    [path, { n: 2 }],
    [`${device.adminPath}/mail/note?ttl_seconds=61`, { n: 1 }],
    [`${device.adminPath}/mail/other?ttl_seconds=60`, { n: 1 }],
  ] as const) {
    expectError(await post(changed, payload, headers), 400, 'idempotency_key_reused');
  }
  expect(await device.mails()).toHaveLength(1);
});

it('bounds hold and are named: lists, refusals that are kept, broadcasts that run and that are kept', async () => {
  const listOf = (count: number) => Array.from({ length: count }, (_, n) => `NOBODY${1_000 + n}`);
  const tooMany = await post(broadcasts.path, { name: 'note', to: { devices: listOf(201) } });
  expectError(tooMany, 413, 'request_too_large');
  expect(tooMany.json.msg).toContain('broadcastDevicesMax');
  const { broadcast_id: id } = await broadcasts.put({ name: 'note', to: { devices: listOf(200) } });
  expect(await broadcasts.done(id)).toMatchObject({ queued: 0, refused: 200 });
  expect(await broadcasts.refusals(id)).toHaveLength(3);

  await importDevices(fleet, { count: 1_500 });
  for (let paused = 0; paused < 3; paused += 1) {
    const put = await broadcasts.put({ name: 'note', to: { all: true } });
    await broadcasts.change(put.broadcast_id, 'pause');
  }
  const full = await post(broadcasts.path, { name: 'note', to: { all: true } });
  expectError(full, 409, 'limit_reached');
  expect(full.json.msg).toContain('broadcastsPerFleetMax');
  const elsewhere = new Broadcasts(await createFleet(server));
  await expect.poll(async () => (await server.admin('GET', `${broadcasts.path}/${id}`)).status).toBe(404);
  const listed = await server.admin<{ items: { broadcast_id: string }[]; next: string }>(
    'GET',
    `${broadcasts.path}?limit=2`,
  );
  expect(listed.body.items).toHaveLength(2);
  const rest = await server.admin<{ items: { broadcast_id: string; state: string }[]; next: null }>(
    'GET',
    `${broadcasts.path}?limit=2&after=${listed.body.next}`,
  );
  expect(rest.body).toMatchObject({ items: [{ state: 'paused' }], next: null });
  const { broadcast_id: last = '' } = rest.body.items[0] ?? {};
  expect((await server.admin('DELETE', `${broadcasts.path}/${last}`)).body).toMatchObject({
    error: 'broadcast_running',
  });
  expect((await server.admin('GET', `${elsewhere.path}/${last}`)).status).toBe(404);
  await broadcasts.change(last, 'cancel');
  expect((await server.admin('DELETE', `${broadcasts.path}/${last}`)).status).toBe(204);
  expect((await server.admin('GET', `${broadcasts.path}/${last}`)).status).toBe(404);
  for (const { broadcast_id } of listed.body.items) await broadcasts.change(broadcast_id, 'cancel');
});

it('broadcasts that run or are paused are shared by fleets: none has them all, and an ended one makes room', async () => {
  const put = () => post(broadcasts.path, { name: 'note', to: { all: true } });
  // A share is three, and so is broadcastsPerFleetMax; a replay takes none, nor one that is refused.
  const keyed = { name: 'note', to: { all: true } };
  const key = { 'idempotency-key': uuidv7() };
  await importDevices(fleet, { count: 1_500 });
  const first = await post(broadcasts.path, keyed, key);
  await broadcasts.change(first.json.broadcast_id, 'pause');
  for (let n = 0; n < 5; n += 1) expect((await post(broadcasts.path, keyed, key)).replayed).toBe('true');
  const other = await createFleet(server);
  await importDevices(other, { count: 1_500 });
  const others = new Broadcasts(other);
  const paused: [Broadcasts, string][] = [[broadcasts, first.json.broadcast_id]];
  const pause = async (of: Broadcasts): Promise<number> => {
    const { status, json } = await post(of.path, { name: 'note', to: { all: true } });
    if (status !== 202) return status;
    await of.change(json.broadcast_id, 'pause');
    paused.push([of, json.broadcast_id]);
    return status;
  };
  expect([await pause(others), await pause(others)]).toEqual([202, 202]);
  expect(await pause(broadcasts)).toBe(202);
  // Two each, and two are free: one more of either would leave fewer than it has.
  const refused = await put();
  expectError(refused, 409, 'limit_reached');
  expect(refused.json.msg).toContain('broadcastsRunningMax');
  const third = await createFleet(server);
  expect(await pause(new Broadcasts(third))).toBe(202);
  const [[of, id] = [broadcasts, '']] = paused;
  await of.change(id, 'cancel');
  expect(await pause(broadcasts)).toBe(202);
  for (const [whose, one] of paused) await whose.change(one, 'cancel');
});

it('broadcasts of fleets take turns, however many one has', async () => {
  const other = await createFleet(server);
  await importDevices(fleet, { count: 3_000 });
  await importDevices(other, { count: 1_000 });
  const busy = [];
  for (let n = 0; n < 3; n += 1) busy.push(await broadcasts.put({ name: 'note', to: { all: true } }));
  const others = new Broadcasts(other);
  const { broadcast_id: id } = await others.put({ name: 'note', to: { all: true } });
  await others.done(id);
  const sent = await Promise.all(busy.map(async ({ broadcast_id }) => broadcasts.get(broadcast_id)));
  // Chunk by chunk as many: what all three had in turn with it would be three times as much.
  expect(sent.reduce((sum, { queued }) => sum + queued, 0)).toBeLessThanOrEqual(2_500);
  for (const { broadcast_id } of busy) await broadcasts.change(broadcast_id, 'cancel');
});

it('what is not a broadcast is refused with the place that is wrong', async () => {
  for (const body of [
    { name: 'note' },
    { name: 'note', to: {} },
    { name: 'note', to: { all: false } },
    { name: 'note', to: { all: true, tag: 'x' } },
    { name: 'note', to: { devices: ['short'] } },
    { name: 'no/name', to: { all: true } },
    { name: 'note', to: { all: true }, payload: [] },
    { name: 'note', to: { all: true }, surprise: 1 },
  ]) {
    expectError(await post(broadcasts.path, body), 400, 'invalid_body', { errors: expect.anything() });
  }
  expectError(
    await post('/fleets/NOFLEET1/broadcasts', { name: 'note', to: { all: true } }),
    404,
    'fleet_not_found',
  );
});

it('tells what became of it: counts by state, and each device with its mail', async () => {
  const made = [];
  for (let n = 0; n < 6; n += 1) made.push(await fleet.createDevice());
  const [acks, rejects, deleted, ...waits] = made;
  const earlier = await waits[1]?.sendMail('water');
  const put = await broadcasts.put({ name: 'note', payload: {}, to: { all: true } });
  await broadcasts.done(put.broadcast_id);
  for (const [device, verb] of [
    [acks, 'ack'],
    [rejects, 'reject'],
  ] as const) {
    const next = await device?.request('GET', '/v1/mailbox/next');
    const settled = await device?.request('PUT', `/v1/mailbox/${verb}/${next?.headers.get('x-mail-id')}`);
    expect(settled?.status).toBe(200);
  }
  await server.admin('DELETE', deleted?.adminPath ?? '');
  const path = `/fleets/${fleet.fleetId}/broadcasts/${put.broadcast_id}`;
  const counts = { acked: 1, rejected: 1, queued: 3, unknown: 1 };
  const none = { delayed: 0, expired: 0, withdrawn: 0, replaced: 0, over_requeued: 0, mailbox_full: 0 };
  expect((await server.admin('GET', `${path}/outcomes`)).body).toEqual({ ...none, ...counts });
  const { body } = await server.admin<ListDocument<BroadcastMailDocument>>(
    'GET',
    `${path}/mails?state=queued&state=rejected`,
  );
  const ids = [...waits, rejects].map((device) => device?.deviceId).sort();
  expect(body.items.map(({ device_id }) => device_id)).toEqual(ids);
  expect(body.next).toBeNull();
  const device = { name: '', enabled: true, state: 'offline', last_seen: null };
  const waiting = body.items.find(({ device_id }) => device_id === waits[0]?.deviceId);
  expect(waiting).toMatchObject({ state: 'queued', fetch_count: 0, device, behind: null, refused: null });
  const second = body.items.find(({ device_id }) => device_id === waits[1]?.deviceId);
  expect(second?.behind).toEqual({ mail_id: earlier?.mailId, name: 'water', fetch_count: 0 });
  const wrong = new TestDevice(server, fleet.fleetId, waits[2]?.deviceId ?? '', made[0]?.secret ?? '');
  expect((await wrong.heartbeat()).status).toBe(401);
  const refused = async () =>
    (await server.admin<ListDocument<BroadcastMailDocument>>('GET', `${path}/mails?state=queued`)).body.items
      .filter((mail) => mail.refused !== null)
      .map((mail) => [mail.device_id, mail.refused]);
  await expect.poll(refused).toEqual([[waits[2]?.deviceId, 'device_secret_incorrect']]);
  const { body: gone } = await server.admin('GET', `${path}/mails?state=unknown`);
  expect(gone).toMatchObject({ items: [{ device_id: deleted?.deviceId, fetch_count: 0, device: null }] });
  const seen: string[] = [];
  for (let after: string | null = ''; after !== null; ) {
    type Mails = { items: { device_id: string }[]; next: string | null };
    const page: Mails = (await server.admin<Mails>('GET', `${path}/mails?limit=2&after=${after}`)).body;
    seen.push(...page.items.map(({ device_id }) => device_id));
    after = page.next;
  }
  expect(seen).toEqual(made.map(({ deviceId }) => deviceId).sort());
  const statusOf = async (rest: string): Promise<number> => (await server.admin('GET', rest)).status;
  expect(await statusOf(`${path}/mails?state=lost`)).toBe(400);
  expect(await statusOf(`/fleets/${fleet.fleetId}/broadcasts/${uuidv7()}/outcomes`)).toBe(404);
  // Deleting the broadcast deletes what is kept of it.
  await server.admin('DELETE', path);
  expect(await statusOf(`${path}/mails`)).toBe(404);
});
