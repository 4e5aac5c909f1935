/** Decision D31: what a device answers to a mail. */

import { beforeAll, describe, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { expectError } from '../harness/devices/routes.ts';
import { TestServer } from '../harness/server/server.ts';

let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
});

interface Receipt {
  state: string;
  reply: unknown;
}

/** Settles with a body, byte for byte. */
const answer = (
  device: TestDevice,
  verb: 'ack' | 'reject' | 'requeue',
  mailId: string,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
) => device.request('PUT', `/v1/mailbox/${verb}/${mailId}`, body, headers);

async function receiptText(device: TestDevice, mailId: string): Promise<string> {
  const response = await fetch(`${server.report.admin_url}/admin/v1${device.adminPath}/mail/${mailId}`, {
    headers: { Authorization: `Bearer ${server.token}` },
  });
  return response.text();
}

const receiptOf = async (device: TestDevice, mailId: string): Promise<Receipt> =>
  JSON.parse(await receiptText(device, mailId)) as Receipt;

interface RecordLine {
  kind: string;
  schema: string;
  mail_id?: string;
  payload: unknown;
}

async function replyLines(device: TestDevice): Promise<RecordLine[]> {
  const path = `/fleets/${fleet.fleetId}/records:latest?device=${device.deviceId}&kind=reply`;
  const { body } = await server.admin<{ items: RecordLine[] }>('GET', path);
  return body.items;
}

describe('D31: a reply is the body of a settlement', () => {
  it('D31: it is in the receipt byte for byte, and a record of kind reply', async () => {
    const device = await fleet.createDevice();
    for (const [verb, state] of [
      ['ack', 'acked'],
      ['reject', 'rejected'],
    ] as const) {
      const { mailId } = await device.sendMail('valve');
      expect(await receiptOf(device, mailId)).toMatchObject({ state: 'queued', reply: null });
      const body = `{ "of":"${verb}", "n": 12345678901234567890, "n": 2 }`;
      const settled = await answer(device, verb, mailId, body);
      expect([settled.status, settled.text]).toEqual([200, '{"ok":true}']);
      expect(settled.headers.get('x-mailbox-size')).toBe('0');
      expect(await receiptText(device, mailId)).toContain(`"state":"${state}"`);
      expect(await receiptText(device, mailId)).toContain(`"reply":${body}}`);
      const [newest] = await replyLines(device);
      expect(newest).toMatchObject({
        kind: 'reply',
        schema: 'valve',
        mail_id: mailId,
        payload: { of: verb, n: 2 },
      });
    }
    expect(await replyLines(device)).toHaveLength(2);
  });

  it('D31: no body and null are none; an empty object is one', async () => {
    const device = await fleet.createDevice();
    for (const [body, reply] of [
      ['', null],
      ['null', null],
      ['{}', {}],
    ] as const) {
      const { mailId } = await device.sendMail('valve');
      expect((await answer(device, 'ack', mailId, body)).status).toBe(200);
      expect((await receiptOf(device, mailId)).reply).toEqual(reply);
    }
    expect(await replyLines(device)).toHaveLength(1);
  });

  it('D31: 4,096 bytes are taken, one more is 413', async () => {
    const device = await fleet.createDevice();
    const { mailId } = await device.sendMail('valve');
    const body = (bytes: number): string => `{"text":"${'x'.repeat(bytes - 11)}"}`;
    expectError(await answer(device, 'ack', mailId, body(4_097)), 413, 'request_too_large');
    expect((await receiptOf(device, mailId)).state).toBe('queued');
    expect((await answer(device, 'ack', mailId, body(4_096))).status).toBe(200);
    expect((await receiptOf(device, mailId)).reply).toEqual({ text: 'x'.repeat(4_085) });
  });

  it('D31, D10: what is no object settles nothing', async () => {
    const device = await fleet.createDevice();
    const { mailId } = await device.sendMail('valve');
    for (const [body, code] of [
      ['[]', 'invalid_body'],
      ['7', 'invalid_body'],
      ['"ok"', 'invalid_body'],
      ['{', 'invalid_json'],
      ['{"a":1}{', 'invalid_json'],
      [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 'invalid_json'],
      [`${'{"a":'.repeat(200)}1${'}'.repeat(200)}`, 'invalid_json'],
    ] as const) {
      expectError(await answer(device, 'ack', mailId, body), 400, code);
    }
    const plain = await answer(device, 'ack', mailId, '{}', { 'Content-Type': 'text/plain' });
    expectError(plain, 415, 'unsupported_media_type');
    // A requeue ends no mail: there is nothing to keep a reply with.
    expectError(await answer(device, 'requeue', mailId, '{"busy":true}'), 400, 'invalid_body');
    expect((await answer(device, 'requeue', mailId, 'null')).status).toBe(200);
    expect(await receiptOf(device, mailId)).toMatchObject({ state: 'queued', reply: null });
    expect(await replyLines(device)).toEqual([]);
  });

  it('D31, D12: it is checked against the reply schema of the name of its mail, where there is one', async () => {
    const own = await createFleet(server);
    const device = await own.createDevice();
    await own.putSchema('reply', 'valve', {
      type: 'object',
      properties: { open: { type: 'boolean' } },
      required: ['open'],
    });
    const { mailId } = await device.sendMail('valve');
    const refused = await answer(device, 'ack', mailId, '{"open":"yes"}');
    expectError(refused, 400, 'schema_mismatch', { errors: [{ path: '/open', msg: expect.any(String) }] });
    expect((await answer(device, 'reject', mailId, '{}')).json.error).toBe('schema_mismatch');
    expect((await answer(device, 'ack', mailId, '{"open":true}')).status).toBe(200);
    // Who lost the answer may say it again; the first reply stands.
    expect((await answer(device, 'ack', mailId, '{"open":"no"}')).status).toBe(200);
    expect((await receiptOf(device, mailId)).reply).toEqual({ open: true });
    expectError(await answer(device, 'reject', mailId, '{"open":true}'), 409, 'mail_already_settled');
    const free = await device.sendMail('lamp');
    expect((await answer(device, 'ack', free.mailId, '{"open":"yes"}')).status).toBe(200);
    const silent = await device.sendMail('valve');
    expect((await device.settle('ack', silent.mailId)).status).toBe(200);
  });

  it('D31: an action runs for a reply, and knows which mail it answers', async () => {
    const own = await createFleet(server);
    const device = await own.createDevice();
    const source = `export default async (record, fleet) => {
      const { kind, name, payload, mailId } = record;
      await fleet.send(record.device, 'seen', { kind, name, payload, mailId });
    };`;
    const on = [{ kind: 'reply', schema: 'valve' }];
    expect((await own.putAction('follow', source, { on })).status).toBe(400);
    await own.putSchema('reply', 'valve', { type: 'object' });
    expect((await own.putAction('follow', source, { on })).status).toBe(201);
    const { mailId } = await device.sendMail('valve');
    await answer(device, 'ack', mailId, '{"open":true}');
    const seen = { kind: 'reply', name: 'valve', payload: { open: true }, mailId };
    await expect
      .poll(async () => (await device.mails()).map(({ payload }) => payload), { timeout: 60_000 })
      .toEqual([seen]);
  });

  it('D28, D31: with the preference the next mail comes along', async () => {
    const device = await fleet.createDevice();
    const first = await device.sendMail('valve');
    const second = await device.sendMail('valve', '{"n":2}');
    const settled = await answer(device, 'ack', first.mailId, '{"done":1}', {
      Prefer: 'return=representation',
    });
    expect([settled.status, settled.text, settled.headers.get('x-mail-id')]).toEqual([
      200,
      '{"n":2}',
      second.mailId,
    ]);
    expect((await receiptOf(device, first.mailId)).reply).toEqual({ done: 1 });
  });
});
