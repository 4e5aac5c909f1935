import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, oneConnection, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { ask, expectError } from '../harness/devices/routes.ts';
import { TestServer } from '../harness/server/server.ts';
import { readRecords } from '../harness/storage/log.ts';

const datapoint = '/v1/datapoint/reading';
const message = '/v1/msg/note';

let server: TestServer;
let fleet: TestFleet;
let device: TestDevice;
/** Payloads that the log of `device` has to hold in the end: those accepted, in order, and nothing else. */
const accepted: string[] = [];
beforeAll(async () => {
  server = await TestServer.start();
  fleet = await createFleet(server);
  device = await fleet.createDevice();
});
afterAll(() => server[Symbol.asyncDispose]());

async function expectStored(path: string, body: string, stored = body): Promise<void> {
  const answer = await device.request('POST', path, body);
  expect([answer.status, answer.text]).toEqual([201, '{"ok":true}']);
  accepted.push(stored);
}

const nested = (levels: number, inside = ''): string => '['.repeat(levels) + inside + ']'.repeat(levels);

describe('D10: what a body may be', () => {
  it('D10, section 2: a datapoint is an object with at least one member', async () => {
    await expectStored(datapoint, '{"a":1}');
    await expectStored(datapoint, '{"":null}');
    await expectStored(datapoint, '{"__proto__":1}');
  });

  it.each(['{}', ' { } ', 'null', 'true', '0', '"text"', '[]', '[{"a":1}]'])(
    'D10: the datapoint %s is 400 invalid_body',
    async (body) => expectError(await device.request('POST', datapoint, body), 400, 'invalid_body'),
  );

  it('D10: a datapoint without a body is 400', async () => {
    expect((await device.request('POST', datapoint)).status).toBe(400);
  });

  it('D10, section 2: a message is an object, {}, null or no body, and the last three are empty', async () => {
    await expectStored(message, '{"a":1}');
    await expectStored(message, '{}');
    await expectStored(message, 'null', '{}');
    expect((await device.request('POST', message)).status).toBe(201);
    accepted.push('{}');
  });

  it('D10: an empty message needs its schema to exist', async () => {
    expectError(await device.request('POST', '/v1/msg/nothing'), 404, 'schema_not_found');
    expectError(await device.request('POST', '/v1/msg/nothing', 'null'), 404, 'schema_not_found');
  });

  it.each(['true', '0', '"text"', '[]', '[{"a":1}]'])(
    'D10: the message %s is 400 invalid_body',
    async (body) => expectError(await device.request('POST', message, body), 400, 'invalid_body'),
  );

  it.each([
    '{',
    '{"a":1,}',
    "{'a':1}",
    '{a:1}',
    '{"a":NaN}',
    '{"a":01}',
    '{"a":+1}',
    '{"a":.5}',
    '{"a":"\n"}',
    '{"a":"\\x"}',
    '{"a":1}}',
    '{"a":1}{"b":2}',
    '{"a":1}\0',
    '// a\n{"a":1}',
    ' ',
    'undefined',
  ])('D10: %j is 400 invalid_json', async (body) => {
    expectError(await device.request('POST', datapoint, body), 400, 'invalid_json');
    expectError(await device.request('POST', message, body), 400, 'invalid_json');
  });

  it.each([
    ['a stray byte', [0xff]],
    ['an overlong zero', [0xc0, 0x80]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a cut character', [0xe2, 0x82]],
    ['a character past the last', [0xf4, 0x90, 0x80, 0x80]],
  ])('D10: %s is not UTF-8: 400 invalid_json', async (_, bytes) => {
    const body = Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bytes), Buffer.from('"}')]);
    expectError(await device.request('POST', datapoint, body), 400, 'invalid_json');
    expectError(await device.request('POST', message, body), 400, 'invalid_json');
  });

  const deep = {
    lists: `{"a":${nested(128)}}`,
    objects: `${'{"a":'.repeat(129)}1${'}'.repeat(129)}`,
    'as deep as the body is long': `{"a":${nested(30_000)}}`,
    'a member that another replaces': `{"a":${nested(128)},"a":1}`,
    'behind a quote in text': `{"a":"\\"]]]","b":${nested(128)}}`,
  };
  it.each(Object.entries(deep))('D10: nested over 128 levels, %s: 400 invalid_json', async (_, body) => {
    for (const path of [datapoint, message]) {
      const answer = await device.request('POST', path, body);
      expectError(answer, 400, 'invalid_json');
      expect(answer.json.msg).toMatch(/nested over 128 levels/);
    }
  });

  it('D10: brackets in text are no nesting, and lists side by side neither', async () => {
    await expectStored(datapoint, `{"a":"${'['.repeat(1_000)}\\"${'{'.repeat(1_000)}"}`);
    await expectStored(datapoint, `{"a":[${'[],'.repeat(1_000)}{}]}`);
  });

  it('D10: what operators send for devices and actions is nested no deeper', async () => {
    const tooDeep = {
      status: 400,
      body: { error: 'invalid_json', msg: expect.stringMatching(/nested over 128 levels/) },
    };
    const a = JSON.parse(nested(128));
    expect(await device.sendMail('note', `{"a":${nested(128)}}`)).toMatchObject(tooDeep);
    const path = `/fleets/${fleet.fleetId}`;
    const broadcast = { name: 'note', to: { all: true }, payload: { a } };
    expect(await server.admin('POST', `${path}/broadcasts`, broadcast)).toMatchObject(tooDeep);
    expect(await server.admin('PUT', `${path}/schemas/datapoint/deep`, { const: a })).toMatchObject(tooDeep);
    const source = 'export default () => {};';
    expect(await fleet.putAction('deep', source, { filter: { payload: { const: a } } })).toMatchObject(
      tooDeep,
    );
  });

  it('D10: UTF-16 is not UTF-8: 400 invalid_json', async () => {
    const body = Buffer.from('{"a":1}', 'utf16le');
    expectError(await device.request('POST', datapoint, body), 400, 'invalid_json');
  });
});

describe('D10: the content type', () => {
  it.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'application/json ; version=1; x="y"',
  ])('D10: %s is taken', async (type) => {
    for (const chunked of [false, true]) {
      const route = { method: 'POST', path: datapoint, body: '{"a":1}', chunked };
      expect((await ask(server, route, { ...device.credentials, 'Content-Type': type })).status).toBe(201);
      accepted.push('{"a":1}');
    }
  });

  it.each([
    undefined,
    '',
    'text/plain',
    'text/json',
    'application/jsonp',
    'application/x-json',
    'application/vnd.api+json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=application/json',
    'json',
  ])('D10: %s is 415', async (type) => {
    const headers: Record<string, string> = type === undefined ? {} : { 'Content-Type': type };
    for (const path of [datapoint, message]) {
      for (const chunked of [false, true]) {
        const route = { method: 'POST', path, body: '{"a":1}', chunked };
        const answer = await ask(server, route, { ...device.credentials, ...headers });
        expectError(answer, 415, 'unsupported_media_type');
      }
    }
  });

  it('D10: no body needs no content type', async () => {
    const { credentials } = device;
    const length = { 'Content-Length': '0' };
    const nothing = { method: 'POST', path: message };
    expect((await ask(server, nothing, { ...credentials })).status).toBe(201);
    expect((await ask(server, nothing, { ...credentials, ...length })).status).toBe(201);
    expect((await ask(server, { ...nothing, chunked: true }, { ...credentials })).status).toBe(201);
    accepted.push('{}', '{}', '{}');
  });

  it('section 4: a heartbeat has no body, and one that has is still a heartbeat', async () => {
    expect((await device.request('POST', '/v1/heartbeat', '{}')).status).toBe(201);
    expect((await device.request('POST', '/v1/heartbeat', '')).status).toBe(201);
  });
});

const spellings = [
  '{"z":1,"a":2,"10":3,"9":4}',
  '{"n":[1.0,1.50,-0,-0.0,1e5,1E+2,1e-7,0.1e1]}',
  '{"n":1e400,"m":-1e400,"s":1e-400}',
  '{"n":[9007199254740993,18446744073709551616,123456789012345678901234567890]}',
  '{"a":1,"a":2,"b":{"c":1,"c":2}}',
  ' \t\r\n{ "a" : [ 1 , 2 ] }\n ',
  '{"é":"\\u00e9","/":"\\/","😀":"\\ud83d\\ude00","\\ud800":"lone"}',
  '{"nul":"\\u0000","line":"\\u2028\u2028"}',
  '{"__proto__":{"a":1},"constructor":{},"toString":1}',
  `{"deep":${'['.repeat(127)}${']'.repeat(127)}}`,
];
const nameOf = (payload: string): string => JSON.stringify(payload.slice(0, 60));

describe('D11: a payload is kept byte for byte', () => {
  it.each(spellings.map((payload) => [nameOf(payload), payload] as const))(
    'D11: as datapoint and message %s',
    async (_, payload) => {
      await expectStored(datapoint, payload);
      await expectStored(message, payload);
    },
  );

  it.each(spellings.map((payload) => [nameOf(payload), payload] as const))(
    'D11: as mail %s',
    async (_, payload) => {
      const receiver = await fleet.createDevice();
      const { mailId } = await receiver.sendMail('note', payload);
      expect((await receiver.next()).text).toBe(payload);
      const envelope = `{"id":"${mailId}","msg_id":"${mailId}","name":"note","payload":${payload}}`;
      expect((await receiver.next('?shape=envelope')).text).toBe(envelope);
    },
  );

  it('D11: of a name that comes twice the schema sees the last', async () => {
    await fleet.putSchema('datapoint', 'numbered', { properties: { a: { type: 'number' } } });
    await expectStored('/v1/datapoint/numbered', '{"a":"text","a":1}');
    const answer = await device.request('POST', '/v1/datapoint/numbered', '{"a":1,"a":"text"}');
    expect([answer.status, answer.json.error]).toEqual([400, 'schema_mismatch']);
  });

  it('D11: of a message whose last spelling is empty, too', async () => {
    await expectStored(message, '{"a":1,"a":2}');
  });
});

describe('D12: JSON Schema 2020-12', () => {
  const mismatches = async (schema: object, body: string): Promise<string[]> => {
    await fleet.putSchema('datapoint', 'checked', schema);
    const { status, json } = await device.request('POST', '/v1/datapoint/checked', body);
    expect([status, json.error]).toEqual([400, 'schema_mismatch']);
    return json.errors.map(({ path }: { path: string }) => path);
  };
  const matches = async (schema: object, body: string): Promise<void> => {
    await fleet.putSchema('datapoint', 'checked', schema);
    await expectStored('/v1/datapoint/checked', body);
  };

  it('D12: a mismatch is told with every failing path', async () => {
    const number = { type: 'number' };
    const schema = {
      properties: { a: number, list: { items: { properties: { b: number } } }, 'x/y~z': number },
    };
    const body = '{"a":"1","list":[{"b":1},{"b":"2"}],"x/y~z":true}';
    expect((await mismatches(schema, body)).sort()).toEqual(['/a', '/list/1/b', '/x~1y~0z']);
  });

  it('D12: what is missing or too much is told with where it belongs', async () => {
    const schema = {
      properties: { in: { required: ['a'], properties: { a: {} }, additionalProperties: false } },
    };
    expect(await mismatches(schema, '{"in":{}}')).toEqual(['/in']);
    expect(await mismatches(schema, '{"in":{"a":1,"b":2}}')).toEqual(['/in']);
  });

  it('D12: keywords that 2020-12 brought hold', async () => {
    const pair = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $defs: { pair: { prefixItems: [{ type: 'string' }, { type: 'number' }], items: false } },
      properties: { pair: { $ref: '#/$defs/pair' } },
      dependentRequired: { unit: ['pair'] },
      unevaluatedProperties: { type: 'string' },
    };
    await matches(pair, '{"pair":["a",1],"unit":"m"}');
    expect(await mismatches(pair, '{"pair":[1,1]}')).toEqual(['/pair/0']);
    expect(await mismatches(pair, '{"pair":["a",1,2]}')).toEqual(['/pair']);
    expect(await mismatches(pair, '{"unit":"m"}')).toEqual(['']);
    expect(await mismatches(pair, '{"unit":1,"pair":[]}')).toEqual(['/unit']);
  });

  it('D12: names that every JavaScript object inherits are names like any other', async () => {
    const text = { type: 'string' };
    await matches({ properties: { constructor: text, toString: text, valueOf: text } }, '{"a":1}');
    expect(await mismatches({ required: ['toString', 'constructor'] }, '{"a":1}')).toEqual(['', '']);
  });

  it('D12: a number is a number however large', async () => {
    await matches({ properties: { a: { type: 'number' } } }, '{"a":1e400}');
    await matches({ properties: { a: { type: 'integer' } } }, '{"a":123456789012345678901234567890}');
  });

  it('D12: a schema is followed as deep as a body may be nested', async () => {
    const list = { type: 'array', items: { $ref: '#/$defs/list' } };
    const schema = { $defs: { list }, properties: { a: { $ref: '#/$defs/list' } } };
    await matches(schema, `{"a":${nested(127)}}`);
    expect(await mismatches(schema, `{"a":${nested(127, '1')}}`)).toEqual([`/a${'/0'.repeat(127)}`]);
  });

  it('D12: an empty message of a known schema passes whatever the schema asks for', async () => {
    await fleet.putSchema('message', 'asking', { required: ['a'] });
    await expectStored('/v1/msg/asking', '{}');
    await expectStored('/v1/msg/asking', 'null', '{}');
    const answer = await device.request('POST', '/v1/msg/asking', { b: 1 });
    expect(answer.json.error).toBe('schema_mismatch');
  });

  it('D12: schemas are per kind and per fleet: another one is 404 schema_not_found', async () => {
    expectError(await device.request('POST', '/v1/datapoint/note', { a: 1 }), 404, 'schema_not_found');
    expectError(await device.request('POST', '/v1/msg/reading', { a: 1 }), 404, 'schema_not_found');
    const other = await createFleet(server);
    await other.putSchema('datapoint', 'theirs', {});
    expectError(await device.request('POST', '/v1/datapoint/theirs', { a: 1 }), 404, 'schema_not_found');
  });

  it('D12: what an operator changes holds for the next request, on every worker', async () => {
    const agents = [1, 2, 3].map(() => oneConnection(server));
    const path = '/v1/datapoint/changing';
    const statuses = () =>
      Promise.all(
        agents.map(async (agent) => (await device.request('POST', path, '{"b":1}', {}, agent)).status),
      );
    expect(await statuses()).toEqual([404, 404, 404]);
    await fleet.putSchema('datapoint', 'changing', { required: ['a'] });
    expect(await statuses()).toEqual([400, 400, 400]);
    await fleet.putSchema('datapoint', 'changing', {});
    expect(await statuses()).toEqual([201, 201, 201]);
    accepted.push('{"b":1}', '{"b":1}', '{"b":1}');
    await server.admin('DELETE', `/fleets/${fleet.fleetId}/schemas/datapoint/changing`);
    expect(await statuses()).toEqual([404, 404, 404]);
    await Promise.all(agents.map((agent) => agent.destroy()));
  });

  it('D12: what is no JSON Schema is refused when it is put', async () => {
    for (const schema of [{ type: 'nonsense' }, { properties: 1 }, { $ref: '#/nowhere' }, [], true]) {
      const path = `/fleets/${fleet.fleetId}/schemas/datapoint/broken`;
      expect(await server.admin('PUT', path, schema)).toMatchObject({
        status: 400,
        body: { error: 'invalid_schema' },
      });
    }
    expectError(await device.request('POST', '/v1/datapoint/broken', { a: 1 }), 404, 'schema_not_found');
  });

  it('D12: mail is held against a mail schema where there is one; any other valid name passes', async () => {
    await fleet.putSchema('mail', 'command', { required: ['a'] });
    const receiver = await fleet.createDevice();
    const wrong = await receiver.sendMail('command', '{"b":1}');
    expect(wrong).toMatchObject({ status: 400, body: { error: 'schema_mismatch', errors: [{ path: '' }] } });
    expect((await receiver.sendMail('command', '{"a":1}')).size).toBe(1);
    expect((await receiver.sendMail('anything', '{"b":1}')).size).toBe(2);
  });
});

it('D10 to D12: all that was accepted is in the log, byte for byte, and nothing that was refused', async () => {
  await server.stop();
  const records = await readRecords(server.report);
  expect(records.map(({ payload }) => payload)).toEqual(accepted);
  expect(new Set(records.map(({ deviceId }) => deviceId))).toEqual(new Set([device.deviceId]));
});
