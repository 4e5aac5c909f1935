import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as elapse } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { TestServer } from '../../harness/server/server.ts';

interface Line {
  record_id: string;
  device_id: string;
  kind: string;
  schema: string;
  stored_at: string;
  payload: Record<string, unknown>;
  cursor: string;
  passed?: number;
  total?: number;
}
interface Batch {
  batch_id: string | null;
  records: Line[];
}

/** Payload with a line end in it, numbers that JSON.parse would spoil, and two members of one name. */
const payload = (n: number): string => `{"n": ${n},\n  "big": 12345678901234567890.10, "n": ${n}}`;

let server: TestServer;
let fleet: TestFleet;
let other: TestFleet;
let devices: TestDevice[];
let halfMs: number;

beforeAll(async () => {
  server = await TestServer.start({ recordStreamsMax: 6, consumersPerFleetMax: 4, consumerFetchesMax: 4 });
  fleet = await createFleet(server);
  other = await createFleet(server);
  devices = [];
  for (let index = 0; index < 6; index += 1) devices.push(await fleet.createDevice());
  const stranger = await other.createDevice();
  for (let n = 0; n < 10; n += 1) {
    if (n === 5) halfMs = Date.now();
    await Promise.all([...devices, stranger].map((device) => send(device, n)));
  }
});
afterAll(() => server[Symbol.asyncDispose]());

async function send(device: TestDevice, n: number): Promise<void> {
  const path = n % 2 === 0 ? '/v1/datapoint/reading' : '/v1/msg/note';
  expect((await device.request('POST', path, payload(n))).status).toBe(201);
}

const records = (query: string, signal?: AbortSignal, of = fleet) =>
  fetch(`${server.report.admin_url}/admin/v1/fleets/${of.fleetId}/records${query}`, {
    headers: { authorization: `Bearer ${server.token}` },
    ...(signal && { signal }),
  });

const parse = (text: string): Line[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);

async function lines(query = ''): Promise<Line[]> {
  const answer = await records(query);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/x-ndjson']);
  return parse(await answer.text());
}

const idOf = ({ record_id }: Line): string => record_id;
const idsOf = (found: readonly Line[]): string[] => found.map(idOf);

const consumer = (name: string, verb = ''): string =>
  `/fleets/${fleet.fleetId}/consumers/${name}${verb === '' ? '' : `/${verb}`}`;
const fetchBatch = (name: string, body: object = {}) =>
  server.admin<Batch>('POST', consumer(name, 'fetch'), body);
const acknowledge = (name: string, batch_id: string | null) =>
  server.admin('POST', consumer(name, 'acknowledge'), { batch_id });

it('records come as lines, each device in order, with the payload as it was sent (D11)', async () => {
  const text = await (await records('')).text();
  const all = parse(text);
  expect(all).toHaveLength(60);
  for (const { deviceId } of devices) {
    const own = all.filter(({ device_id }) => device_id === deviceId);
    expect(own.map(({ payload: { n } }) => n)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(own.map(({ kind, schema }) => `${kind} ${schema}`).slice(0, 2)).toEqual([
      'datapoint reading',
      'message note',
    ]);
  }
  // A line end between tokens is a space, and that is all.
  expect(text).toContain(`"payload":${payload(3).replace('\n', ' ')},`);
  const times = all.map(({ stored_at }) => stored_at);
  expect(times).toEqual([...times].sort());
});

it('a filter leaves the rest out, and any line can be gone on from', async () => {
  const all = await lines();
  const [device, other] = devices as [TestDevice, TestDevice];
  const time = new Date(halfMs).toISOString();
  const wanted: [string, (line: Line) => boolean][] = [
    ['?kind=message', ({ kind }) => kind === 'message'],
    ['?kind=message&schema=reading', () => false],
    ['?schema=reading', ({ schema }) => schema === 'reading'],
    ['?kind=message&kind=datapoint', () => true],
    ['?kind=receipt&kind=datapoint', ({ kind }) => kind === 'datapoint'],
    ['?schema=reading&schema=nothing', ({ schema }) => schema === 'reading'],
    ['?schema=note&schema=reading&kind=message', ({ schema }) => schema === 'note'],
    [
      `?device=${device.deviceId}&device=${other.deviceId}`,
      ({ device_id }) => [device.deviceId, other.deviceId].includes(device_id),
    ],
    [`?device=${device.deviceId}`, ({ device_id }) => device_id === device.deviceId],
    [`?from=${time}`, ({ stored_at }) => stored_at >= time],
    [`?to=${time}`, ({ stored_at }) => stored_at < time],
    ['?after=latest', () => false],
  ];
  for (const [query, isWanted] of wanted)
    expect(idsOf(await lines(query)), query).toEqual(idsOf(all.filter(isWanted)));
  for (const at of [0, 17, 42, 59]) {
    expect(await lines(`?after=${all[at]?.cursor}`)).toEqual(all.slice(at + 1));
    expect(await lines(`?limit=5&after=${all[at]?.cursor}`)).toEqual(all.slice(at + 1, at + 6));
  }
  const [last, ...before] = (await lines('?progress=true&kind=message')).reverse() as [Line, ...Line[]];
  expect(last.passed).toBe(last.total);
  expect(last.total).toBeGreaterThanOrEqual(70);
  expect(before.filter(({ record_id }) => record_id)).toHaveLength(30);
  expect(await lines(`?after=${last.cursor}`)).toEqual([]);
  // A cursor of another log, as after a restore, gives everything.
  expect(await lines(`?after=${all[0]?.cursor.replaceAll(/\w+-\w+/g, '1-zzz')}`)).toEqual(all);
});

it('what is no filter, cursor or name is refused by its name', async () => {
  for (const query of [
    '?kind=mail',
    '?after=%2e%2e',
    '?from=yesterday',
    '?to=2026-02-31T99:00:00Z',
    '?limit=0',
    // Mistyped, it must not stand for none.
    '?schemas=reading',
  ]) {
    const answer = await records(query);
    expect([answer.status, ((await answer.json()) as { error: string }).error], query).toEqual([
      400,
      'bad_request',
    ]);
  }
  expect(await (await records('?kind=mail')).json()).toMatchObject({
    errors: [{ path: '/kind/0', msg: 'must be one of datapoint, message, receipt, reply' }],
  });
  expect((await records('?device=SHORT')).status).toBe(404);
  expect((await server.admin('PUT', consumer('no%20name'), {})).status).toBe(400);
  expect((await server.admin('PUT', consumer('hall'), { start: 'yesterday' })).status).toBe(400);
  expect((await server.admin('PUT', consumer('hall'), { kind: 'message' })).status).toBe(400);
  for (const verb of ['fetch', 'acknowledge', 'release']) {
    const { status, body } = await server.admin(
      'POST',
      consumer('nobody', verb),
      verb === 'fetch' ? {} : { batch_id: 'x' },
    );
    expect([status, body.error]).toEqual([404, 'consumer_not_found']);
  }
});

it('who only looks on gets so many records a second, and is told how many were skipped', async () => {
  expect((await records('?max_per_second=5')).status).toBe(400);
  const controller = new AbortController();
  const answer = await records('?follow=true&max_per_second=5', controller.signal);
  let text = '';
  for await (const chunk of answer.body ?? []) {
    text += Buffer.from(chunk as Uint8Array).toString();
    if (text.includes('"skipped"') && text.endsWith('\n')) break;
  }
  controller.abort();
  const found = parse(text) as (Line & { skipped?: number })[];
  const all = await lines();
  expect(idsOf(found.slice(0, 5))).toEqual(idsOf(all.slice(0, 5)));
  // Some more of the next second may be shown where one ends meanwhile: what is shown and what is skipped are all up to
  // the cursor.
  const shown = found.findIndex(({ skipped }) => skipped !== undefined);
  const { skipped, cursor } = found[shown] ?? {};
  const last = all.findIndex((line) => line.cursor === cursor);
  // A cursor at the end of the log may be behind records of other fleets, and is then of none of these.
  expect(shown + (skipped ?? 0)).toBe(last === -1 ? all.length : last + 1);
});

it('a stream that is followed goes on with what is stored later; there are so many, and no fleet has all', async () => {
  const controller = new AbortController();
  const [device] = devices as [TestDevice];
  const opened = await Promise.all(
    [1, 2, 3].map(() => records('?follow=true&after=latest', controller.signal)),
  );
  const refused = await records('?follow=true');
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  expect(await refused.text()).toContain('recordStreamsMax');
  const others = await records('?follow=true', controller.signal, other);
  expect(others.status).toBe(200);
  const reading = opened.map(async (answer) => {
    let text = '';
    for await (const chunk of answer.body ?? []) {
      text += Buffer.from(chunk as Uint8Array).toString();
      const whole = parse(text.slice(0, text.lastIndexOf('\n')));
      if (whole.length >= 5) return whole.map(({ payload: { n } }) => n);
    }
    return undefined;
  });
  for (let n = 100; n < 105; n += 1) await send(device, n);
  for (const read of reading) expect(await read).toEqual([100, 101, 102, 103, 104]);
  controller.abort();
  await expect.poll(async () => (await records('?limit=1')).status).toBe(200);
});

it('a consumer is given what it has not acknowledged, each shard to one worker at a time', async () => {
  const { status, body } = await server.admin('PUT', consumer('hall'), {
    kinds: ['message'],
    lease_seconds: 60,
  });
  expect([status, body.kinds, body.lost]).toEqual([201, ['message'], 0]);
  const [wider, narrow] = [
    await server.admin('PUT', consumer('hall'), { kinds: [], lease_seconds: null }),
    await server.admin('PUT', consumer('hall'), { kinds: ['message'] }),
  ];
  expect([wider.status, wider.body]).toMatchObject([200, { kinds: [], lease_seconds: 30 }]);
  expect([narrow.status, narrow.body]).toMatchObject([200, { kinds: ['message'], lease_seconds: 30 }]);
  await server.admin('PUT', consumer('hall'), { lease_seconds: 60 });
  const before = await lines('?kind=message');
  const given: Line[] = [];
  for (;;) {
    // Every shard is out once each worker has one.
    const batches: Batch[] = [];
    for (let batch = await fetchBatch('hall', { max: 7 }); batch.body.batch_id !== null; ) {
      batches.push(batch.body);
      batch = await fetchBatch('hall', { max: 7 });
    }
    if (batches.length === 0) break;
    expect(batches.length).toBeLessThanOrEqual(server.report.shards);
    const [first, ...rest] = batches as [Batch, ...Batch[]];
    // Given again, as it was.
    expect(
      (await server.admin('POST', consumer('hall', 'release'), { batch_id: first.batch_id })).body,
    ).toEqual({
      records: first.records.length,
    });
    expect((await acknowledge('hall', first.batch_id)).status).toBe(404);
    const again = (await fetchBatch('hall', { max: 7 })).body;
    expect(again.records).toEqual(first.records);
    for (const batch of [again, ...rest]) {
      given.push(...batch.records);
      expect((await acknowledge('hall', batch.batch_id)).body).toEqual({ records: batch.records.length });
      expect((await acknowledge('hall', batch.batch_id)).body).toEqual({ records: 0 });
    }
  }
  expect(given.map(idOf).sort()).toEqual(before.map(idOf).sort());
  for (const { deviceId } of devices) {
    const own = (all: Line[]) => all.filter(({ device_id }) => device_id === deviceId).map(idOf);
    expect(own(given)).toEqual(own(before));
  }
  expect((await server.admin('GET', consumer('hall'))).body).toMatchObject({ behind: 0, seconds_behind: 0 });
});

it('a batch that is not acknowledged by the end of its lease is given to who waits for it', async () => {
  const [device] = devices as [TestDevice];
  await server.admin('PUT', consumer('late'), { start: 'latest', lease_seconds: 1 });
  const waiting = fetchBatch('late', { wait_seconds: 30, worker: 'first' });
  const text = `{"n":1,"big":1e400}`;
  await device.request('POST', '/v1/msg/note', text);
  const first = await waiting;
  expect(first.body.records).toHaveLength(1);
  const { body } = await server.admin<{ shards: { batch: { worker: string } | null }[] }>(
    'GET',
    consumer('late'),
  );
  expect(body.shards.map(({ batch }) => batch?.worker).filter((worker) => worker !== undefined)).toEqual([
    'first',
  ]);
  const second = await fetchBatch('late', { wait_seconds: 30 });
  expect(second.body.records).toEqual(first.body.records);
  expect((await acknowledge('late', first.body.batch_id)).body.error).toBe('batch_not_found');
  expect((await acknowledge('late', second.body.batch_id)).status).toBe(200);
  expect((await server.admin('DELETE', consumer('late'))).status).toBe(204);
  expect((await server.admin('GET', consumer('late'))).status).toBe(404);
});

it('consumers and waiting fetches are so many, of which no fleet has all, and a scrape tells how far each is behind', async () => {
  for (const name of ['b', 'c', 'd']) await server.admin('PUT', consumer(name), { start: 'latest' });
  const { status, body } = await server.admin('PUT', consumer('e'), {});
  expect([status, body.error]).toEqual([409, 'limit_reached']);
  // One of them may itself come while both places are taken.
  const waitAs = async (name: string): ReturnType<typeof fetchBatch> => {
    const answer = await fetchBatch(name, { wait_seconds: 60 });
    return answer.status === 503 ? waitAs(name) : answer;
  };
  const waiting = ['b', 'c'].map(waitAs);
  await expect.poll(async () => (await fetchBatch('d')).status).toBe(503);
  await server.admin('PUT', `/fleets/${other.fleetId}/consumers/own`, { start: 'latest' });
  const others = await server.admin('POST', `/fleets/${other.fleetId}/consumers/own/fetch`, {});
  expect(others.status).toBe(200);
  await Promise.all(devices.map((device) => send(device, 1)));
  for (const batch of await Promise.all(waiting)) expect(batch.body.records.length).toBeGreaterThan(0);
  const metrics = await (await fetch(`${server.report.admin_url}/metrics`)).text();
  expect(metrics).toContain(`fleetpost_consumer_lag_records{fleet="${fleet.fleetId}",consumer="d"} 6`);
});

it('requests in one go are answered in order; those whose connection ends first cost no stream and no end', async () => {
  const { hostname, port } = new URL(server.report.admin_url);
  const get = (path: string, more = '') =>
    `GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${server.token}\r\n${more}\r\n`;
  const open = (text: string) => {
    const socket = connect(Number(port), hostname)
      .setEncoding('latin1')
      .on('error', () => {});
    socket.write(text);
    return socket;
  };
  let answers = '';
  const polite = open(`${get('/metrics')}${get('/healthz')}${get('/nowhere', 'Connection: close\r\n')}`);
  for await (const chunk of polite) answers += chunk;
  expect(answers.match(/HTTP.1.1 \d+|"ok":true/g)).toEqual([
    'HTTP/1.1 200',
    'HTTP/1.1 200',
    '"ok":true',
    'HTTP/1.1 404',
  ]);

  const follow = get(`/admin/v1/fleets/${fleet.fleetId}/records?follow=true`);
  const body = '{"wait_seconds":60}';
  const wait =
    `POST /admin/v1${consumer('b', 'fetch')} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${server.token}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  for (let n = 0; n < 4; n += 1) {
    const leaving = open(`${follow}${get('/healthz')}${follow}${wait}`);
    await once(leaving, 'data');
    leaving.destroy();
    await once(leaving, 'close');
  }
  // At any moment of theirs: before they are looked at, while they are, and while they wait.
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(follow, wait), fc.nat(12)), { minLength: 1, maxLength: 6 }),
      async (leaving) => {
        await Promise.all(
          leaving.map(async ([text, afterMs]) => {
            const socket = open(text);
            await elapse(afterMs);
            socket.destroy();
          }),
        );
      },
    ),
    { numRuns: 40 },
  );
  // All that the fleet may have is free again.
  const staying = new AbortController();
  // Kept: of an answer that is collected as garbage, `fetch` ends the connection.
  const streams: Response[] = [];
  const openStreams = async (): Promise<number> => {
    const stream = await records('?follow=true&after=latest', staying.signal);
    if (stream.status === 200) streams.push(stream);
    return streams.length;
  };
  await expect.poll(openStreams).toBe(3);
  expect((await records('?follow=true')).status).toBe(503);
  expect(streams).toHaveLength(3);
  staying.abort();
  const waiting = (name: string) => fetchBatch(name, { wait_seconds: 1 });
  const waits = async () => (await Promise.all(['b', 'c'].map(waiting))).map(({ status }) => status);
  await expect.poll(waits).toEqual([200, 200]);
  expect(await server.stop()).toBe(0);
});
