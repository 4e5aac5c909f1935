import { rmSync } from 'node:fs';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { SchemaCheckDocument } from '../../src/contract/schema.ts';
import { createFleet, oneConnection, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { evaluate, inspected } from '../harness/server/inspector.ts';
import { TestServer, temporaryFolder } from '../harness/server/server.ts';
import { until } from '../harness/server/vitals.ts';

let server: TestServer;
let fleet: TestFleet;
let device: TestDevice;

beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
  device = await fleet.createDevice();
});

const inA = (schema: object): object => ({ properties: { a: schema } });
const root = { $ref: '#' };

const root0 = { $ref: '#/$defs/0' };

/** Each level holds a value against the next one twice. */
function doubling(levels: number): object {
  const levelOf = (index: number): object => {
    const next = { $ref: `#/$defs/${index + 1}` };
    return index < levels ? { anyOf: [next, next] } : { type: 'string' };
  };
  const $defs = Object.fromEntries(Array.from({ length: levels + 1 }, (_, index) => [index, levelOf(index)]));
  return { $defs, $ref: '#/$defs/0' };
}

const put = (schema: object) =>
  server.admin('PUT', `/fleets/${fleet.fleetId}/schemas/datapoint/costly`, schema);

describe('a schema that could take long is refused when it is put', () => {
  it.each([
    ['a value is held against 2^30 subschemas', doubling(30), /schemaStepsMax/],
    ['each level of a body doubles the work', inA({ anyOf: [root, root] }), /schemaStepsMax/],
    [
      'the same by names that two patterns fit',
      { patternProperties: { '^a': root, b$: root } },
      /schemaStepsMax/,
    ],
    [
      'the same by $dynamicRef',
      { $dynamicAnchor: 'n', ...inA({ allOf: [{ $dynamicRef: '#n' }, root] }) },
      /Steps/,
    ],
    [
      'the same between two $ids',
      {
        $id: 'x:/a',
        $defs: { b: { $id: 'x:/b', ...inA({ allOf: [{ $ref: 'x:/a' }, { $ref: 'x:/a#' }] }) } },
        ...inA({ $ref: 'x:/b' }),
      },
      /Steps/,
    ],
    ['it never goes deeper', { allOf: [root] }, /without going deeper/],
    [
      'a pattern has thousands of states, for texts that are short but many',
      inA({ items: { pattern: '(a|b)*a(a|b){900}$', maxLength: 1_000 } }),
      /schemaStepsMax/,
    ],
    [
      'the same under names of the body’s own',
      { additionalProperties: { pattern: '(a|b)*a(a|b){900}$', maxLength: 1_000 } },
      /schemaStepsMax/,
    ],
    [
      'the same under sixty names',
      {
        $defs: { text: { pattern: '(a|b)*a(a|b){900}$', maxLength: 1_000 } },
        properties: Object.fromEntries(Array.from({ length: 60 }, (_, i) => [i, { $ref: '#/$defs/text' }])),
      },
      /patterns may take more than/,
    ],
    [
      'a list is looked through a hundred times',
      inA({ allOf: Array.from({ length: 100 }, () => ({ uniqueItems: true })) }),
      /schemaStepsMax/,
    ],
    [
      'each of many items has a long enumeration',
      inA({ items: { enum: Array.from({ length: 5_000 }, (_, i) => i) } }),
      /schemaStepsMax/,
    ],
    ['a pattern has hundreds of states', inA({ pattern: '(a|b)*a(a|b){200}$' }), /schemaStepsMax/],
    ['a pattern looks ahead', inA({ pattern: '^(?=a)b' }), /\(\?=/],
    ['a pattern refers back', inA({ pattern: '(a)\\1' }), /escape/],
    [
      'it is nested thousands deep',
      Array(3_000)
        .fill(0)
        .reduce((not: object) => ({ not }), {}),
      /nested over 128 levels/,
    ],
  ])('%s', async (_, schema, reason) => {
    const answer = await put(schema);
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatch(/invalid_(schema|json)/);
    expect(answer.body.msg).toMatch(reason);
  });

  it.each([
    [
      'a tree',
      { properties: { left: root, right: root, value: { type: 'number' } } },
      { left: { right: { value: 1 } } },
    ],
    ['a list', inA({ anyOf: [{ type: 'null' }, root] }), { a: { a: null } }],
    ['names of its own', { properties: { b: root }, additionalProperties: root }, { c: { b: {} } }],
    ['two hundred kinds', { oneOf: Array.from({ length: 200 }, (_, i) => inA({ const: i })) }, { a: 7 }],
    [
      'a pattern with properties of Unicode',
      inA({ pattern: '^\\p{Lu}\\p{L}+\\u002D\\d{1,3}$' }),
      { a: 'Żółć-12' },
    ],
    ['unique items', inA({ uniqueItems: true }), { a: [1, 2] }],
    [
      'unique items, each a list of its own',
      { $defs: { l: { uniqueItems: true, items: { $ref: '#/$defs/l' } } }, ...inA({ $ref: '#/$defs/l' }) },
      {
        a: [
          [[1], [2]],
          [[2], [1]],
        ],
      },
    ],
    [
      'a pattern of hundreds of states for one short text',
      inA({ pattern: '^[A-Za-z0-9 ]{1,200}$', maxLength: 200 }),
      { a: 'x' },
    ],
  ])('what grows no faster than the body is taken: %s', async (_, schema, body) => {
    expect((await put(schema)).status).toBeLessThan(300);
    expect((await device.request('POST', '/v1/datapoint/costly', body)).status).toBe(201);
  });
});

it('a pattern that would take a backtracking engine for ever is answered like any other', async () => {
  await put(inA({ pattern: '^(a+)+$' }));
  const answer = await device.request('POST', '/v1/datapoint/costly', { a: `${'a'.repeat(60_000)}!` });
  expect(answer).toMatchObject({ status: 400, json: { error: 'schema_mismatch', errors: [{ path: '/a' }] } });
});

it('a large body with thousands of failing places is told the first', async () => {
  await put(inA({ items: { anyOf: Array.from({ length: 50 }, () => ({ type: 'string' })) } }));
  const body = { a: Array.from({ length: 30_000 }, () => 1) };
  const answer = await device.request('POST', '/v1/datapoint/costly', body);
  expect(answer).toMatchObject({ status: 400, json: { error: 'schema_mismatch' } });
});

it('a list of 64 KiB of objects is found unique as fast as it is read', async () => {
  await put(inA({ uniqueItems: true }));
  const items = Array.from({ length: 5_000 }, (_, n) => ({ n }));
  const send = (a: object[]) => device.request('POST', '/v1/datapoint/costly', { a });
  expect((await send(items)).status).toBe(201);
  expect((await send([...items.slice(1), { n: 7 }])).json.errors).toEqual([
    { path: '/a', msg: 'must NOT have duplicate items (items ## 6 and 4999 are identical)' },
  ]);
});

it('thousands of references to a large subschema, and thousands of names that require others, are soon compiled', async () => {
  const names = Array.from({ length: 800 }, (_, i) => `p${i}`);
  const large = {
    properties: Object.fromEntries(names.slice(0, 300).map((name) => [name, { minLength: 1 }])),
  };
  const all = Object.fromEntries(names.map((name) => [`q${name}`, { $ref: '#/$defs/large' }]));
  expect((await put({ $defs: { large }, properties: all })).status).toBeLessThan(300);
  expect((await put({ dependentRequired: { a: names } })).status).toBeLessThan(300);
  const answer = await device.request('POST', '/v1/datapoint/costly', { a: 1 });
  expect(answer.json.errors[0]).toEqual({ path: '', msg: "must have required property 'p0'" });
});

describe('what is no keyword of JSON Schema 2020-12 is refused with its path', () => {
  it.each([
    ['a promise in place of a check', { $async: true }, '/$async'],
    [
      'the same in a subschema',
      { $defs: { b: { $async: true } }, ...inA({ $ref: '#/$defs/b' }) },
      '/$defs/b/$async',
    ],
    ['a keyword of OpenAPI', inA({ type: 'string', nullable: true }), '/properties/a/nullable'],
    ['a slip', inA({ maxlength: 3 }), '/properties/a/maxlength'],
  ])('%s', async (_, schema, path) => {
    const expected = { status: 400, body: { msg: expect.stringContaining(`${path} is not a keyword`) } };
    expect(await put(schema)).toMatchObject(expected);
    const filter = { payload: schema };
    await fleet.putSchema('message', 'opened', {});
    expect(await fleet.putAction('filtering', 'export default () => {};', { filter })).toMatchObject(
      expected,
    );
  });

  it('an annotation of one’s own is taken, and given back as it was put', async () => {
    const schema = { 'x-unit': { $async: true }, ...inA({ 'x-label': 'A', type: 'number' }) };
    expect((await put(schema)).status).toBeLessThan(300);
    const shown = await server.admin('GET', `/fleets/${fleet.fleetId}/schemas/datapoint/costly`);
    expect(shown.body).toEqual(schema);
    expect((await device.request('POST', '/v1/datapoint/costly', { a: 'b' })).status).toBe(400);
  });
});

/** As long as a test may take: `waitFor` gives up after a second by itself. */
const patience = { timeout: 60_000 };

describe('a schema whose check takes too long', () => {
  const path = '/v1/datapoint/slow';
  /** A text without a period, or the engine of patterns would soon know its way. */
  const text = Array.from({ length: 60_000 }, (_, i) => (Math.sin(i * i) < 0 ? 'a' : 'b')).join('');
  /** Within `schemaStepsMax`, and some hundred milliseconds for 60 KB. */
  const schema = inA({ pattern: '(a|b)*a(a|b){60}$' });

  it('is disabled on every worker, and for no other; put again, it is tried again', async () => {
    await using strict = await TestServer.start({
      schemaCheckMillisecondsMax: 10,
      schemaCheckMillisecondsPerSecondMax: 0,
    });
    const own = await createFleet(strict);
    const sender = await own.createDevice();
    await own.putSchema('datapoint', 'slow', schema);
    const list = async () => {
      const { body } = await strict.admin<{ items: object[] }>('GET', `/fleets/${own.fleetId}/schemas`);
      return body.items;
    };
    const small = { a: 'ab' };
    expect((await sender.request('POST', path, small)).json.error).toBe('schema_mismatch');
    expect(await list()).toContainEqual({ kind: 'datapoint', name: 'slow', disabled: null });
    await sender.request('POST', path, { a: text });
    const reason = expect.stringMatching(
      /^a body of \d+ bytes took \d+ ms to check \(schemaCheckMillisecondsMax\)$/,
    );
    await vi.waitFor(
      async () => expect(await list()).toContainEqual({ kind: 'datapoint', name: 'slow', disabled: reason }),
      patience,
    );
    for (let n = 0; n < 4; n += 1) {
      const agent = oneConnection(strict);
      // A worker hears of it when it gets to it.
      const answer = await vi.waitFor(async () => {
        const found = await sender.request('POST', path, small, {}, agent);
        expect(found.status).toBe(503);
        return found;
      }, patience);
      await agent.destroy();
      expect(answer).toMatchObject({ status: 503, json: { error: 'unavailable' } });
      expect(answer.json.msg).toMatch(/disabled until it is put again.*schemaCheckMillisecondsMax/);
      expect(answer.headers.get('retry-after')).toBe('60');
    }
    expect((await sender.request('POST', '/v1/datapoint/reading', small)).status).toBe(201);
    expect(strict.stderr).toMatch(/schema disabled/);
    const metrics = await (await fetch(`${strict.report.admin_url}/metrics`)).text();
    expect(metrics).toMatch(/^fleetpost_schemas_disabled 1$/m);
    // Another of the same fleet does not enable it.
    await own.putSchema('message', 'more', {});
    expect((await sender.request('POST', path, small)).status).toBe(503);
    await own.putSchema('datapoint', 'slow', schema);
    expect((await sender.request('POST', path, small)).json.error).toBe('schema_mismatch');
    expect(await list()).toContainEqual({ kind: 'datapoint', name: 'slow', disabled: null });
  });
});

describe('the patterns of a schema', () => {
  /** 30,000 states, and few steps for so short a text. */
  const large = inA({ pattern: `^${'a{0,1000}'.repeat(12)}$`, maxLength: 1 });
  const reason = expect.stringMatching(
    /^\/properties\/a\/pattern may have \d+ states, more than 10000 \(schemaPatternStatesMax\)$/,
  );

  it('are refused if they are large, and whoever asks first is told', async () => {
    const msg = expect.stringContaining('schemaPatternStatesMax');
    expect(await put(large)).toMatchObject({ status: 400, body: { error: 'invalid_schema', msg } });
    const path = `/fleets/${fleet.fleetId}/schemas:check`;
    const body = { kind: 'datapoint', schema: JSON.stringify(large), sample: '{"a":"b"}' };
    expect((await server.admin('POST', path, body)).body).toMatchObject({ fault: msg, sample: null });
    await fleet.putSchema('message', 'opened', {});
    const action = await fleet.putAction('filtering', 'export default () => {};', {
      filter: { payload: large },
    });
    expect(action).toMatchObject({ status: 400, body: { error: 'invalid_action', msg } });
  });

  it('that were stored when more was allowed disable it from the start, until it is put again', async () => {
    const data = temporaryFolder();
    const path = '/v1/datapoint/reading';
    await using before = await TestServer.start({ schemaPatternStatesMax: 100_000 }, data);
    const own = await createFleet(before);
    const sender = await own.createDevice();
    await own.putSchema('datapoint', 'reading', large);
    expect((await sender.request('POST', path, { a: 'a' })).status).toBe(201);
    await before.stop();
    await using after = await TestServer.start({}, data);
    const list = async () =>
      (await after.admin<{ items: object[] }>('GET', `/fleets/${own.fleetId}/schemas`)).body.items;
    expect(await list()).toContainEqual({ kind: 'datapoint', name: 'reading', disabled: reason });
    expect(after.stderr).toMatch(/schema disabled/);
    const moved = sender.on(after);
    expect(await moved.request('POST', path, { a: 'a' })).toMatchObject({
      status: 503,
      json: {
        error: 'unavailable',
        msg: expect.stringMatching(/disabled until it is put again.*schemaPatternStatesMax/),
      },
    });
    const small = inA({ pattern: '^a{0,1000}$', maxLength: 1 });
    await after.admin('PUT', `/fleets/${own.fleetId}/schemas/datapoint/reading`, small);
    expect((await moved.request('POST', path, { a: 'a' })).status).toBe(201);
    rmSync(data, { recursive: true, force: true });
  });
});

it.each([0, 'main'] as const)('a promise that fails unheard of on thread %s ends nothing', async (thread) => {
  await using watched = await TestServer.start({}, undefined, inspected);
  const own = await createFleet(watched);
  const sender = await own.createDevice();
  await evaluate(watched, thread, "for (let i = 0; i < 100; i += 1) Promise.reject(new Error('unheard'));");
  await until(() => /unhandled promise rejection/.test(watched.stderr));
  expect(watched.stderr.match(/unhandled promise rejection/g)).toHaveLength(1);
  expect((await sender.request('POST', '/v1/datapoint/reading', { a: 1 })).status).toBe(201);
});

describe('a schema is tried before it is put', () => {
  const check = (body: object) =>
    server.admin<SchemaCheckDocument>('POST', `/fleets/${fleet.fleetId}/schemas:check`, body);
  const climate = JSON.stringify({
    properties: { celsius: { maximum: 60 }, readings: { items: { enum: ['a', 'b', 'c'] } } },
    required: ['celsius'],
  });

  it('says what it costs, and which value of a body costs most', async () => {
    const { body } = await check({ kind: 'datapoint', schema: climate });
    expect(body).toMatchObject({ fault: null, steps_at: '/readings/*', sample: null });
    expect(body.steps).toBeLessThan(body.steps_max);
    const costly = JSON.stringify({ ...doubling(30), $ref: undefined, ...inA({ items: root0 }) });
    expect((await check({ kind: 'datapoint', schema: costly })).body.fault).toMatch(
      /schemaStepsMax\) at \/a\/\*/,
    );
  });

  it('holds a sample against it as it was written, a stored one too', async () => {
    const sampled = async (kind: string, sample: string, schema = climate) =>
      (await check({ kind, schema, sample })).body.sample;
    expect(await sampled('datapoint', '{"celsius":21.5}')).toMatchObject({ matches: true });
    expect(await sampled('datapoint', '{"celsius":99}')).toEqual({
      matches: false,
      error: 'schema_mismatch',
      msg: expect.any(String),
      errors: [{ path: '/celsius', msg: 'must be <= 60' }],
    });
    expect(await sampled('datapoint', '{}', '{}')).toMatchObject({ error: 'invalid_body' });
    expect(await sampled('message', '', '{}')).toMatchObject({ matches: true });
    expect(await sampled('message', '{"a":')).toMatchObject({ error: 'invalid_json' });
    expect(await sampled('message', '{"a":'.repeat(200))).toMatchObject({ error: 'invalid_json' });
    expect(await sampled('message', '{}', '{"type":')).toBeNull();
    await fleet.putSchema('message', 'tried', { required: ['by'] });
    const stored = await check({ kind: 'message', name: 'tried', sample: '{"by":1}' });
    expect(stored.body.sample).toMatchObject({ matches: true });
    expect((await check({ kind: 'message', name: 'none' })).status).toBe(404);
    expect((await check({ kind: 'message' })).status).toBe(400);
    const large = await check({ kind: 'message', schema: '{}', sample: ' '.repeat(70_000) });
    expect(large.status).toBe(413);
  });

  it('is no change in the audit log, and not for who may only read', async () => {
    await check({ kind: 'datapoint', schema: climate });
    const { body } = await server.admin<{ items: { route: string }[] }>('GET', '/audit?limit=1000');
    expect(body.items.filter(({ route }) => route.endsWith('/schemas:check'))).toEqual([]);
    const reader = await server.admin<{ token: string }>('POST', '/tokens', {
      name: 'reader',
      scopes: ['read'],
    });
    const answer = await fetch(`${server.report.admin_url}/admin/v1/fleets/${fleet.fleetId}/schemas:check`, {
      method: 'POST',
      headers: { authorization: `Bearer ${reader.body.token}`, 'content-type': 'application/json' },
      body: '{"kind":"mail","schema":"{}"}',
    });
    expect(answer.status).toBe(403);
  });
});
