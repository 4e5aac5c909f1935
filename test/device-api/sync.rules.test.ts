/** Decisions D29 and D30: a whole wake in one request, and a device's own order. */

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

let server: TestServer;
let fleet: TestFleet;
let device: TestDevice;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
  await fleet.putSchema('datapoint', 'level', {
    type: 'object',
    properties: { level: { type: 'number' } },
    required: ['level'],
  });
  device = await fleet.createDevice();
});

const sync = (body: object | string | Uint8Array, of = device): Promise<DeviceAnswer> =>
  of.request('POST', '/v1/sync', body);
const reading = (payload: unknown): object => ({ kind: 'datapoint', schema: 'reading', payload });
const numbered = (from: number, to: number): object[] =>
  Array.from({ length: to - from + 1 }, (_, index) => reading({ n: from + index }));
const times = <V>(count: number, value: V): V[] => Array.from({ length: count }, () => value);

/** The lines of the device's records, as the admin API gives them out. */
async function lines(of: TestDevice): Promise<string[]> {
  const url = `${server.report.admin_url}/admin/v1/fleets/${of.fleetId}/records?device=${of.deviceId}`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${server.token}` } });
  return (await answer.text()).split('\n').filter((line) => line !== '' && !line.includes('"receipt"'));
}

const numbers = async (of: TestDevice): Promise<number[]> =>
  (await lines(of)).map((line) => JSON.parse(line).payload.n);

describe('D29: the answer', () => {
  it('D29: of nothing is what waits, and the time', async () => {
    const { status, json, headers } = await sync({});
    expect(status).toBe(200);
    const { time, ...rest } = json;
    expect(rest).toEqual({ records: [], settled: [], mailbox_size: 0, mail: [] });
    expect(Math.abs(time - Date.now())).toBeLessThan(60_000);
    expect([headers.get('x-mailbox-size'), headers.get('x-messages-available')]).toEqual(['0', 'false']);
    expect(headers.get('content-type')).toBe('application/json');
  });

  it('D11, D29: records are stored in their order, byte for byte, whatever is around them', async () => {
    const own = await fleet.createDevice();
    const payloads = [
      '{ "a":1.50,"a" : 2 }',
      '{"big":12345678901234567890,"e":1E+2,"é":"\\ud800","q":"\\"}]\\\\"}',
      '{"nested":{"payload":[{"records":[]},"}"]},"":[]}',
      '{"\u{1f6b2}":"\u{1f6b2}"}',
    ];
    const records = [
      `{"kind":"datapoint","schema":"reading","payload":${payloads[0]}}`,
      ` { "payload" : {"not":"this"} , "schema":"reading","p\\u0061yload"\n:\t${payloads[1]} , "kind":"datapoint" } `,
      `{"payload":${payloads[2]},"schema":"note","kind":"message","schema":"note"}`,
      `{"kind":"message","schema":"reading","kind":"datapoint","payload":${payloads[3]}}`,
    ];
    const others = '{"kind":"message","schema":"note"},{"kind":"message","schema":"note","payload":null}';
    const body = `\n{"records":[7], "settle":[],"recor\\u0064s" : [ ${records.join(',\r\n')} , ${others} ] }\t`;
    const { json } = await sync(body, own);
    expect(json.records).toEqual(times(6, { status: 201 }));
    const found = await lines(own);
    for (const [index, payload] of [...payloads, '{}', '{}'].entries()) {
      expect(found[index]).toContain(`"payload":${payload}`);
    }
    expect(found.map((line) => JSON.parse(line).kind)).toEqual([
      ...['datapoint', 'datapoint', 'message', 'datapoint'],
      ...['message', 'message'],
    ]);
  });

  it('D25, D29: a record keeps the time that the device gave it', async () => {
    const own = await fleet.createDevice();
    const recorded_at = new Date(Date.now() - 86_400_000).toISOString();
    const { json } = await sync({ records: [{ ...reading({ n: 1 }), recorded_at }] }, own);
    expect(json.records).toEqual([{ status: 201 }]);
    expect(JSON.parse((await lines(own))[0] ?? '')).toMatchObject({ recorded_at, payload: { n: 1 } });
  });

  it('D29: each record is judged by itself, with the error that its own route gives', async () => {
    const own = await fleet.createDevice();
    const level = (payload: unknown): object => ({ kind: 'datapoint', schema: 'level', payload });
    const deep = `${'['.repeat(129)}${']'.repeat(129)}`;
    const deepEnough = `{"a":${'['.repeat(127)}${']'.repeat(127)}}`;
    const wrong: [record: unknown, status: number, error: string][] = [
      [7, 400, 'invalid_body'],
      [null, 400, 'invalid_body'],
      [[], 400, 'invalid_body'],
      [{}, 400, 'invalid_body'],
      [{ ...reading({ n: 1 }), kind: 'mail' }, 400, 'invalid_body'],
      [{ ...reading({ n: 1 }), kind: 1 }, 400, 'invalid_body'],
      [{ ...reading({ n: 1 }), schema: 1 }, 400, 'invalid_body'],
      [{ ...reading({ n: 1 }), key: uuidv7() }, 400, 'invalid_body'],
      [{ ...reading({ n: 1 }), recorded_at: 1 }, 400, 'invalid_body'],
      [{ ...reading({ n: 1 }), recorded_at: 'yesterday' }, 400, 'invalid_recorded_at'],
      [{ ...reading({ n: 1 }), schema: 'toString' }, 404, 'schema_not_found'],
      [{ ...reading({ n: 1 }), schema: 'ä'.repeat(300) }, 404, 'schema_not_found'],
      [{ ...reading({ n: 1 }), kind: 'message' }, 404, 'schema_not_found'],
      [reading({}), 400, 'invalid_body'],
      [reading([1]), 400, 'invalid_body'],
      [reading('text'), 400, 'invalid_body'],
      [reading(null), 400, 'invalid_body'],
      [{ kind: 'datapoint', schema: 'reading' }, 400, 'invalid_body'],
      [{ kind: 'message', schema: 'note', payload: 0 }, 400, 'invalid_body'],
      [{ kind: 'message', schema: 'nothing' }, 404, 'schema_not_found'],
      [level({ level: 'high' }), 400, 'schema_mismatch'],
      [level({}), 400, 'invalid_body'],
    ];
    const texts = wrong.map(([record]) => JSON.stringify(record));
    texts.push(`{"kind":"datapoint","schema":"reading","payload":{"a":${deep}}}`);
    const good = `{"kind":"datapoint","schema":"reading","payload":${deepEnough}}`;
    const { status, json } = await sync(`{"records":[${good},${texts.join(`,${good},`)},${good}]}`, own);
    expect(status).toBe(200);
    const items: { status: number; error?: string; msg?: string; errors?: object[] }[] = json.records;
    expect(items.filter((_, index) => index % 2 === 0)).toEqual(times(texts.length + 1, { status: 201 }));
    const refused = items.filter((_, index) => index % 2 === 1);
    expect(refused.map((one) => [one.status, one.error])).toEqual([
      ...wrong.map(([, itsStatus, error]) => [itsStatus, error]),
      [400, 'invalid_json'],
    ]);
    for (const one of refused) expect(one.msg).toEqual(expect.any(String));
    const alone = await own.request('POST', '/v1/datapoint/level', { level: 'high' });
    expect(refused[20]).toEqual({ status: 400, ...alone.json });
    expect(await lines(own)).toHaveLength(texts.length + 1);
  });

  it('D15, D29: settlements are answered one by one, and the mail behind them is given byte for byte', async () => {
    const own = await fleet.createDevice();
    const payload = '{ "n":1.50,"big":12345678901234567890 }';
    const first = (await own.sendMail('set', '{}')).mailId;
    const next = (await own.sendMail('set', payload)).mailId;
    const third = (await own.sendMail('water')).mailId;
    const gone = uuidv7();
    const settle = [
      { id: first, verb: 'ack' },
      { id: first.replaceAll('-', '').toUpperCase(), verb: 'ack' },
      { id: first, verb: 'reject' },
      { id: gone, verb: 'ack' },
      { id: 'nonsense', verb: 'ack' },
      { id: next, verb: 'eat' },
      { id: 7, verb: 'ack' },
      { id: next, verb: 'ack', key: {} },
      { id: next },
      next,
    ];
    const answer = await sync({ settle, mail: { max: 2 } }, own);
    const { settled, mailbox_size, mail } = answer.json;
    expect(settled.map((one: { status: number; error?: string }) => [one.status, one.error])).toEqual([
      [200, undefined],
      [200, undefined],
      [409, 'mail_already_settled'],
      [404, 'mail_not_found'],
      [400, 'invalid_mail_id'],
      ...times(5, [400, 'invalid_body']),
    ]);
    expect([mailbox_size, answer.headers.get('x-mailbox-size')]).toEqual([2, '2']);
    expect(mail).toEqual([
      { id: next, name: 'set', payload: JSON.parse(payload), requeue_count: 0 },
      { id: third, name: 'water', payload: {}, requeue_count: 0 },
    ]);
    expect(answer.text).toContain(`"payload":${payload},`);
    const { json } = await sync({ settle: [{ id: next, verb: 'requeue' }] }, own);
    expect(json.mail.map((one: { id: string }) => one.id)).toEqual([third]);
    const { json: both } = await sync({ mail: { max: 16, bytes: 44 } }, own);
    expect(
      both.mail.map((one: { id: string; requeue_count: number }) => [one.id, one.requeue_count]),
    ).toEqual([
      [third, 0],
      [next, 1],
    ]);
    expect((await sync({ mail: { max: 16, bytes: 40 } }, own)).json.mail).toHaveLength(1);
    expect((await sync({ mail: { max: 0 } }, own)).json).toMatchObject({ mail: [], mailbox_size: 2 });
  });

  it('D29: small items count as more than their bytes, for the requests behind them', async () => {
    const limited = await createFleet(server, { device_bytes_per_second_max: 1_000 });
    const own = await limited.createDevice();
    expect((await sync({ records: times(500, 1) }, own)).status).toBe(200);
    expectError(await sync({}, own), 429, 'rate_limited');
  });

  it('D7: a requeue counts the payload, which is written anew, for the bytes of its device', async () => {
    const limited = await createFleet(server, { device_bytes_per_second_max: 100 });
    const own = await limited.createDevice();
    const { mailId } = await own.sendMail('large', `{"text":"${'x'.repeat(60_000)}"}`);
    const requeue = () => sync({ settle: [{ id: mailId, verb: 'requeue' }], mail: { max: 0 } }, own);
    expect((await requeue()).json.settled).toEqual([expect.objectContaining({ status: 200 })]);
    expectError(await requeue(), 429, 'rate_limited');
  });

  it('D13, D29: mail in the answer counts as fetched, on the settlement too', async () => {
    const own = await fleet.createDevice();
    const { mailId } = await own.sendMail('set', '{}');
    const agent = oneConnection(server);
    for (const _ of [1, 2]) await own.request('POST', '/v1/sync', {}, {}, agent);
    await own.request('POST', '/v1/sync', { settle: [{ id: mailId, verb: 'ack' }] }, {}, agent);
    const receipt = await server.admin('GET', `${own.adminPath}/mail/${mailId}`);
    expect(receipt.body).toMatchObject({ state: 'acked', fetch_count: 2 });
    await agent.destroy();
  });
});

describe('D31: replies in a sync', () => {
  const settleOne = async (own: TestDevice, text: string): Promise<{ status: number; error?: string }> =>
    (await sync(`{"settle":[{"verb":"ack","id":"${text}}]}`, own)).json.settled[0];

  async function receiptText(own: TestDevice, mailId: string): Promise<string> {
    const url = `${server.report.admin_url}/admin/v1${own.adminPath}/mail/${mailId}`;
    return (await fetch(url, { headers: { authorization: `Bearer ${server.token}` } })).text();
  }

  it('D11, D31: a reply is kept byte for byte, beside others and of whichever settlement', async () => {
    const own = await fleet.createDevice();
    const ids = [(await own.sendMail()).mailId, (await own.sendMail()).mailId, (await own.sendMail()).mailId];
    const replies = ['{ "a":1.50,"big":12345678901234567890 }', 'null', '{"settle":[{"reply":"}"}]}'];
    const items = ids.map((id, n) => `{ "reply" : ${replies[n]} ,"id":"${id}", "verb":"ack"}`);
    const { json } = await sync(`{"settle":[ ${items.join(' , ')} ],"records":[]}`, own);
    expect(json.settled).toEqual(times(3, { status: 200 }));
    for (const [n, id] of ids.entries()) {
      expect(await receiptText(own, id)).toContain(`"reply":${replies[n]}`);
    }
  });

  it('D31: what is wrong with a reply is the error of its settlement alone, which is not made', async () => {
    const own = await fleet.createDevice();
    await fleet.putSchema('reply', 'valve', { type: 'object', required: ['done'] });
    const { mailId } = await own.sendMail('valve');
    const deep = `${'['.repeat(128)}${']'.repeat(128)}`;
    const wrong: [reply: string, status: number, error: string][] = [
      ['7', 400, 'invalid_body'],
      ['[]', 400, 'invalid_body'],
      [`{"a":${deep}}`, 400, 'invalid_json'],
      [`{"done":"${'x'.repeat(4_096)}"}`, 413, 'request_too_large'],
      ['{"a":1}', 400, 'schema_mismatch'],
    ];
    for (const [reply, status, error] of wrong) {
      expect(await settleOne(own, `${mailId}","reply":${reply}`)).toMatchObject({ status, error });
    }
    const requeue = { id: mailId, verb: 'requeue', reply: { done: 1 } };
    expect((await sync({ settle: [requeue] }, own)).json.settled[0]).toMatchObject({ error: 'invalid_body' });
    expect((await sync({}, own)).json.mail).toMatchObject([{ id: mailId, requeue_count: 0 }]);
    expect(await settleOne(own, `${mailId}","reply":{"done":1}`)).toEqual({ status: 200 });
  });
});

describe('D29: what comes of the records', () => {
  it('a message triggers an action as by its own route', async () => {
    const own = await fleet.createDevice();
    await fleet.putSchema('message', 'opened', { type: 'object' });
    const source = `export default (record, fleet) => fleet.send(record.device, 'closed', record.payload);`;
    const put = await fleet.putAction('answer', source);
    expect(put.status).toBeLessThan(300);
    const opened = [1, 2].map((n) => ({ kind: 'message', schema: 'opened', payload: { n } }));
    await sync({ records: [...numbered(1, 3), ...opened] }, own);
    const wanted = [1, 2].map((n) => ({ name: 'closed', payload: { n } }));
    await expect.poll(() => own.mails(), { timeout: 30_000 }).toMatchObject(wanted);
    const { json } = await sync({ mail: { max: 2 } }, own);
    expect(json.mail).toMatchObject(wanted);
  });

  it('what was refused is told as of its own route, until it is accepted', async () => {
    const own = await fleet.createDevice();
    const level = (value: unknown): object => ({
      kind: 'datapoint',
      schema: 'level',
      payload: { level: value },
    });
    await sync({ records: [level('high'), level('low'), reading({ n: 1 })] }, own);
    const path = `${own.adminPath}/refusals`;
    const told = async () => (await server.admin<{ items: object[] }>('GET', path)).body.items;
    await expect
      .poll(told)
      .toMatchObject([
        { route: 'POST /v1/datapoint/:schema_name', name: 'level', error: 'schema_mismatch', count: 2 },
      ]);
    await sync({ records: [level(1)] }, own);
    await expect.poll(told).toMatchObject([{ accepted_at: expect.any(String) }]);
  });
});

describe('D29: the whole request', () => {
  const id = uuidv7();
  const wrong: [body: object | string, error: string][] = [
    ['', 'invalid_json'],
    ['{', 'invalid_json'],
    ['{"records":[{"payload":{]}', 'invalid_json'],
    ['\ufeff{}', 'invalid_json'],
    ['null', 'invalid_body'],
    ['[]', 'invalid_body'],
    ['7', 'invalid_body'],
    [{ config_version: 1 }, 'invalid_body'],
    [{ firmware: {} }, 'invalid_body'],
    ['{"__proto__":{}}', 'invalid_body'],
    [{ records: {} }, 'invalid_body'],
    [{ records: null }, 'invalid_body'],
    [{ records: times(501, 7) }, 'invalid_body'],
    [{ settle: times(65, { id, verb: 'ack' }) }, 'invalid_body'],
    [{ settle: 'all' }, 'invalid_body'],
    [{ queue: 'q' }, 'invalid_body'],
    [{ seq: 1 }, 'invalid_body'],
    [{ queue: '', seq: 1 }, 'invalid_body'],
    [{ queue: 'q'.repeat(17), seq: 1 }, 'invalid_body'],
    [{ queue: 'q q', seq: 1 }, 'invalid_body'],
    [{ queue: 7, seq: 1 }, 'invalid_body'],
    [{ queue: 'q', seq: 0 }, 'invalid_body'],
    [{ queue: 'q', seq: 1.5 }, 'invalid_body'],
    [{ queue: 'q', seq: '1' }, 'invalid_body'],
    [{ queue: 'q', seq: 2 ** 48 }, 'invalid_body'],
    [{ queue: 'q', seq: 2 ** 48 - 1, records: times(2, 7) }, 'invalid_body'],
    ['{"queue":"q","seq":1e400}', 'invalid_body'],
    [{ mail: 1 }, 'invalid_body'],
    [{ mail: { max: 17 } }, 'invalid_body'],
    [{ mail: { max: -1 } }, 'invalid_body'],
    [{ mail: { bytes: 65_537 } }, 'invalid_body'],
    [{ mail: { bytes: null } }, 'invalid_body'],
    [{ mail: { size: 1 } }, 'invalid_body'],
  ];

  it('D29: what is wrong with it is 400 for the whole, and stores nothing', async () => {
    const own = await fleet.createDevice();
    const { mailId } = await own.sendMail();
    for (const [body, error] of wrong) {
      const whole =
        typeof body === 'string'
          ? body
          : { records: numbered(1, 1), settle: [{ id: mailId, verb: 'ack' }], ...body };
      const answer = await sync(whole, own);
      expect([body, answer.status, answer.json?.error]).toEqual([body, 400, error]);
    }
    expect(await lines(own)).toEqual([]);
    expect((await sync({}, own)).json.mailbox_size).toBe(1);
  });

  it('D9, D10: the size, the type and the credentials are checked as on every route', async () => {
    const own = await fleet.createDevice();
    const filled = (bytes: number): string => {
      const front = '{"records":[{"kind":"datapoint","schema":"reading","payload":{"a":"';
      return `${front}${'x'.repeat(bytes - front.length - 5)}"}}]}`;
    };
    expect((await sync(filled(65_536), own)).json.records).toEqual([{ status: 201 }]);
    expectError(await sync(filled(65_537), own), 413, 'request_too_large');
    const typed = await own.request('POST', '/v1/sync', '{}', { 'Content-Type': 'text/plain' });
    expectError(typed, 415, 'unsupported_media_type');
    const secret = `${own.secret.slice(0, -1)}${own.secret.endsWith('A') ? 'B' : 'A'}`;
    const stranger = await own.request('POST', '/v1/sync', '{}', { 'X-Device-Secret': secret });
    expect([stranger.status, stranger.json.detail]).toEqual([401, 'device_secret_incorrect']);
    expectError(
      await sync(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), own),
      400,
      'invalid_json',
    );
  });

  it('the largest number of records and settlements is taken, and deep nesting where nobody looks', async () => {
    const own = await fleet.createDevice();
    const settle = times(64, { id, verb: 'ack' });
    const { json } = await sync({ records: numbered(1, 500), settle }, own);
    expect(json.records).toEqual(times(500, { status: 201 }));
    expect(json.settled).toHaveLength(64);
    expect(await numbers(own)).toEqual(numbered(1, 500).map((_, index) => index + 1));
    const deep = `${'['.repeat(30_000)}${']'.repeat(30_000)}`;
    expect((await sync(`{"records":[${deep}]}`, own)).json.records[0].error).toBe('invalid_body');
    expect((await sync(`{"records":[{"schema":${deep}}]}`, own)).json.records[0].error).toBe('invalid_body');
    expectError(await sync(`{"mail":${deep}}`, own), 400, 'invalid_body');
  });

  it('D12: 500 records that each mismatch cost no more than one body, and say where', async () => {
    const properties = Object.fromEntries(times(100, 0).map((_, n) => [`p${n}`, { type: 'string' }]));
    await fleet.putSchema('datapoint', 'wide', {
      type: 'object',
      properties,
      required: Object.keys(properties),
    });
    const own = await fleet.createDevice();
    const answer = await sync(
      { records: times(500, { kind: 'datapoint', schema: 'wide', payload: { p0: 1 } }) },
      own,
    );
    const items: { error: string; errors: object[] }[] = answer.json.records;
    expect(items.every(({ error, errors }) => error === 'schema_mismatch' && errors.length > 0)).toBe(true);
    // As many as any answer has.
    expect(items[0]?.errors).toHaveLength(20);
    expect(answer.text.length).toBeLessThan(1_000_000);
  });
});

describe('D30: a queue of its own', () => {
  const send = async (own: TestDevice, seq: number, records: object[], queue = 'q') => {
    const { status, json } = await sync({ queue, seq, records }, own);
    expect(status).toBe(200);
    return json;
  };

  it('D30: a repetition is answered as before, and stored no second time', async () => {
    const own = await fleet.createDevice();
    const records = [reading({ n: 1 }), reading(7), reading({ n: 3 })];
    const first = await send(own, 1, records);
    expect(first.records.map((one: { status: number }) => one.status)).toEqual([201, 400, 201]);
    expect(first).toMatchObject({ stored_to: 3, skipped: 0 });
    const again = await send(own, 1, records);
    expect({ ...again, time: 0 }).toEqual({ ...first, time: 0 });
    const more = await send(own, 2, [...records.slice(1), reading({ n: 4 })]);
    expect(more.records.map((one: { status: number }) => one.status)).toEqual([400, 201, 201]);
    expect(more.stored_to).toBe(4);
    expect(await numbers(own)).toEqual([1, 3, 4]);
  });

  it('D30: a gap is taken and counted, a queue that starts anew is another one', async () => {
    const own = await fleet.createDevice();
    expect(await send(own, 5, [reading({ n: 5 })])).toMatchObject({ stored_to: 5, skipped: 4 });
    expect(await send(own, 7, [reading({ n: 7 })])).toMatchObject({ stored_to: 7, skipped: 5 });
    expect(await send(own, 1, [reading({ n: 1 })], 'r')).toMatchObject({ stored_to: 1, skipped: 0 });
    expect(await send(own, 1, [], 'q')).toMatchObject({ stored_to: 7, skipped: 5, records: [] });
    expect(await numbers(own)).toEqual([5, 7, 1]);
  });

  it('D30: without a queue nothing is recognised', async () => {
    const own = await fleet.createDevice();
    for (const _ of [1, 2])
      expect((await sync({ records: numbered(1, 2) }, own)).json.stored_to).toBeUndefined();
    expect(await numbers(own)).toEqual([1, 2, 1, 2]);
  });
});
