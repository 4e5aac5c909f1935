import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../harness/device.ts';
import { TestServer } from '../harness/server.ts';

let server: TestServer;
let fleet: TestFleet;
let device: TestDevice;

beforeAll(async () => {
  server = await TestServer.start();
  fleet = await createFleet(server);
  device = await fleet.createDevice();
});

afterAll(() => server[Symbol.asyncDispose]());

const inA = (schema: object): object => ({ properties: { a: schema } });
const root = { $ref: '#' };

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
    ['items are compared with each other without end', inA({ uniqueItems: true }), /maxItems/],
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
      /stack/,
    ],
  ])('%s', async (_, schema, reason) => {
    const answer = await put(schema);
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_schema' } });
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
    ['unique items', inA({ uniqueItems: true, maxItems: 1_000 }), { a: [1, 2] }],
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
