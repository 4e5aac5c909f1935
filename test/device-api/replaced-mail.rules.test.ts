/** Decision D31: mail that takes the place of mail of its key, and what a device had in hand before. */

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

const sendTo = async (device: TestDevice, n: number, query = '?replace_key=set-point') =>
  (await device.sendMail('set', `{"n":${n}}`, query)).mailId;

async function receiptOf(device: TestDevice, mailId: string): Promise<Record<string, unknown>> {
  const { body } = await device.server.admin<Record<string, unknown>>(
    'GET',
    `${device.adminPath}/mail/${mailId}`,
  );
  return body;
}

/** Ways of a device to have a mail in hand. Each answers the payloads that it was given. */
const fetches: readonly (readonly [string, (device: TestDevice) => Promise<unknown[]>])[] = [
  ['GET', async (device) => [(await device.next()).json]],
  ['GET in an envelope', async (device) => [(await device.next('?shape=envelope')).json.payload]],
  ['GET that would have waited', async (device) => [(await device.next('?wait=5')).json]],
  [
    'a settlement that asks for the next mail',
    async (device) => {
      const mailId = String((await device.next()).headers.get('x-mail-id'));
      const prefer = { Prefer: 'return=representation' };
      const answer = await device.request('PUT', `/v1/mailbox/ack/${mailId}`, undefined, prefer);
      expect(answer.headers.get('preference-applied')).toBe('return=representation');
      return [answer.json];
    },
  ],
  [
    'a sync',
    async (device) => {
      const { json } = await device.request('POST', '/v1/sync', { mail: { max: 16, bytes: 65_536 } });
      return json.mail.map(({ payload }: { payload: unknown }) => payload);
    },
  ],
];

describe('D31: mail with a replace key', () => {
  it.each(fetches)(
    'D31: what was answered by %s stays, and newer mail comes behind it',
    async (way, fetch) => {
      const device = await fleet.createDevice();
      if (way.startsWith('a settlement')) await device.sendMail('first', '{}');
      const replaced = await sendTo(device, 1);
      const fetched = await sendTo(device, 2);
      expect(await fetch(device)).toEqual([{ n: 2 }]);
      await sendTo(device, 3);
      await sendTo(device, 4);
      expect((await device.mails()).map(({ payload }) => payload)).toEqual([{ n: 2 }, { n: 4 }]);
      expect(await receiptOf(device, replaced)).toMatchObject({ state: 'replaced', fetch_count: 0 });
      expect(await receiptOf(device, fetched)).toMatchObject({ state: 'queued', fetch_count: 1 });
    },
  );

  it('D31: a fetch is counted once, in the receipt and in the log, as it is answered', async () => {
    const device = await fleet.createDevice();
    const mailId = await sendTo(device, 1);
    await device.next();
    expect(await receiptOf(device, mailId)).toMatchObject({ state: 'queued', fetch_count: 1 });
    await device.next();
    await device.settle('ack', mailId);
    // The second is stored with others, some seconds later where another worker has counted it (D13).
    await expect.poll(() => receiptOf(device, mailId)).toMatchObject({ state: 'acked', fetch_count: 2 });
  });

  it('D31: HEAD is no fetch: what it named may be replaced, and is then not known any more', async () => {
    const device = await fleet.createDevice();
    const old = await sendTo(device, 1);
    const head = await device.request('HEAD', '/v1/mailbox/next');
    expect(head.headers.get('x-mail-id')).toBe(old);
    const mailId = await sendTo(device, 2);
    expectError(await device.settle('ack', old), 404, 'mail_not_found');
    const { json, headers } = await device.next();
    expect([json, headers.get('x-mail-id'), headers.get('x-mailbox-size')]).toEqual([{ n: 2 }, mailId, '1']);
  });

  it('D31: each mail that was answered has its end by the device, while newer ones come all the time', async () => {
    const device = await fleet.createDevice();
    const sent: string[] = [];
    const answered: string[] = [];
    const sending = (async () => {
      for (let n = 0; n < 150; n += 1) sent.push(await sendTo(device, n));
    })();
    let isSending = true;
    void sending.finally(() => {
      isSending = false;
    });
    for (;;) {
      const wasSending = isSending;
      const { status, headers } = await device.next();
      if (status === 204 && !wasSending) break;
      if (status === 204) continue;
      expect(status).toBe(200);
      const mailId = String(headers.get('x-mail-id'));
      expect((await device.settle('ack', mailId)).status).toBe(200);
      answered.push(mailId);
    }
    await sending;
    const receipts = await Promise.all(sent.map((mailId) => receiptOf(device, mailId)));
    const acked = receipts.filter(({ state }) => state === 'acked');
    expect(acked.map(({ mail_id }) => mail_id)).toEqual(answered);
    for (const { state, fetch_count } of receipts) {
      expect([state, fetch_count]).toEqual(fetch_count === 0 ? ['replaced', 0] : ['acked', 1]);
    }
    expect(answered.at(-1)).toBe(sent.at(-1));
  });

  it('D31: a key of other characters, or a longer one, is refused', async () => {
    const device = await fleet.createDevice();
    for (const key of ['', 'a b', 'ä', 'a.b', 'x'.repeat(65)]) {
      const path = `${device.adminPath}/mail/set?replace_key=${encodeURIComponent(key)}`;
      const answer = await server.admin<{ error: string }>('POST', path, {});
      expect([answer.status, answer.body.error]).toEqual([400, 'bad_request']);
    }
    await sendTo(device, 1, `?replace_key=${'x'.repeat(64)}`);
  });
});
