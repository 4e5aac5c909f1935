/** Decision D28: what every answer says of the mailbox, and a settlement that answers the next mail. */

import { uuidv7 } from 'uuidv7';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  createFleet,
  type DeviceAnswer,
  type TestDevice,
  type TestFleet,
} from '../harness/devices/device.ts';
import { TestServer } from '../harness/server/server.ts';

let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
});

const reading = '/v1/datapoint/reading';

const toldBy = ({ headers }: DeviceAnswer): (string | null)[] => [
  headers.get('x-messages-available'),
  headers.get('x-mailbox-size'),
];

const settleAndTake = (
  device: TestDevice,
  verb: string,
  mailId: string,
  prefer = 'return=representation',
): Promise<DeviceAnswer> =>
  device.request('PUT', `/v1/mailbox/${verb}/${mailId}`, undefined, { Prefer: prefer });

const routes: [method: string, path: string, body?: object, headers?: Record<string, string>][] = [
  ['GET', '/v1'],
  ['POST', '/v1/heartbeat'],
  ['POST', reading, { level: 1 }],
  ['POST', '/v1/msg/note', { text: 'hi' }],
  ['POST', '/v1/msg/note', {}],
  ['GET', '/v1/mailbox/size'],
  ['HEAD', '/v1/mailbox/next'],
  ['GET', '/v1/mailbox/next'],
  ['GET', '/v1/mailbox/next?shape=envelope'],
  ['POST', '/v1/sync', {}],
  ['POST', '/v1/sync', { records: [{ kind: 'message', schema: 'note' }], mail: { max: 0 } }],
];

describe('D28: every 2xx answer says what waits', () => {
  it('D28: with an empty mailbox, one of two mails, and one of more than are prepared', async () => {
    const device = await fleet.createDevice();
    for (const size of [0, 2, 70]) {
      const told = (await device.next()).headers.get('x-mailbox-size');
      for (let mail = Number(told); mail < size; mail += 1) await device.sendMail('water', '{}');
      for (const [method, path, body] of routes) {
        const answer = await device.request(method, path, body);
        expect([method, path, answer.status, ...toldBy(answer)]).toEqual([
          method,
          path,
          answer.status,
          String(size > 0),
          String(size),
        ]);
        expect(answer.status).toBeLessThan(300);
      }
    }
  });

  it('D28: a replayed datapoint tells of the mailbox as it is now', async () => {
    const device = await fleet.createDevice();
    const key = { 'Idempotency-Key': uuidv7() };
    expect(toldBy(await device.request('POST', reading, { a: 1 }, key))).toEqual(['false', '0']);
    await device.sendMail('water', '{}');
    const replayed = await device.request('POST', reading, { a: 1 }, key);
    expect([replayed.headers.get('idempotent-replayed'), ...toldBy(replayed)]).toEqual(['true', 'true', '1']);
  });
});

describe('D28: a settlement with Prefer: return=representation', () => {
  it('D28: answers what the next fetch would, which counts as one', async () => {
    const device = await fleet.createDevice();
    const payload = '{"n":1.50,"big":12345678901234567890}';
    const first = await device.sendMail('first', '{}');
    const second = await device.sendMail('second', payload);
    const taken = await settleAndTake(device, 'ack', first.mailId);
    expect([taken.status, taken.text]).toEqual([200, payload]);
    expect(taken.headers.get('x-mail-id')).toBe(second.mailId);
    expect(taken.headers.get('x-mail-name')).toBe('second');
    expect(taken.headers.get('preference-applied')).toBe('return=representation');
    expect(toldBy(taken)).toEqual(['true', '1']);
    const last = await settleAndTake(device, 'reject', second.mailId);
    expect([last.status, last.text, last.headers.get('x-mail-id')]).toEqual([204, '', '']);
    expect([last.headers.get('preference-applied'), ...toldBy(last)]).toEqual([
      'return=representation',
      'false',
      '0',
    ]);
    const path = `${device.adminPath}/mail/${second.mailId}`;
    // Another worker may have answered it than the one that settles it: then its fetches come some seconds later.
    await expect
      .poll(async () => (await server.admin('GET', path)).body, { timeout: 20_000, interval: 200 })
      .toMatchObject({ state: 'rejected', fetch_count: 1 });
  });

  it('D28: a requeue answers the mail behind it, and its own if it is the only one', async () => {
    const device = await fleet.createDevice();
    const first = await device.sendMail('first', '{}');
    const sole = await settleAndTake(device, 'requeue', first.mailId);
    expect(sole.headers.get('x-mail-id')).toBe(first.mailId);
    const second = await device.sendMail('second', '{}');
    const next = await settleAndTake(device, 'requeue', first.mailId);
    expect(next.headers.get('x-mail-id')).toBe(second.mailId);
  });

  it('D28: a repeated one answers the head as it is now; one that is refused, its error', async () => {
    const device = await fleet.createDevice();
    const first = await device.sendMail('first', '{}');
    const second = await device.sendMail('second', '{}');
    for (let time = 0; time < 2; time += 1) {
      const taken = await settleAndTake(device, 'ack', first.mailId);
      expect([taken.status, taken.headers.get('x-mail-id')]).toEqual([200, second.mailId]);
    }
    const refused = await settleAndTake(device, 'reject', first.mailId);
    expect([refused.status, refused.json.error]).toEqual([409, 'mail_already_settled']);
    expect(refused.headers.get('preference-applied')).toBeNull();
  });

  it('RFC 7240: is found among other preferences, and other values are none', async () => {
    const device = await fleet.createDevice();
    const { mailId } = await device.sendMail('only', '{}');
    for (const prefer of ['wait=5, return="representation"; a=b', 'Return = Representation']) {
      expect((await settleAndTake(device, 'requeue', mailId, prefer)).headers.get('x-mail-id')).toBe(mailId);
    }
    for (const prefer of ['return=minimal', 'representation', 'xreturn=representation', '']) {
      const plain = await settleAndTake(device, 'requeue', mailId, prefer);
      expect([plain.text, plain.headers.get('preference-applied'), ...toldBy(plain)]).toEqual([
        '{"ok":true}',
        null,
        'true',
        '1',
      ]);
    }
  });
});
