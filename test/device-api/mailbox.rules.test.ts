/** Decisions D13 to D17, sections 3 to 5: fetching and settling mail. */

import { uuidv7 } from 'uuidv7';
import { beforeAll, describe, expect, it } from 'vitest';
import { settledMax } from '../../src/domain/mail/settled-mails.ts';
import { configDefault } from '../../src/server/configuration/config.ts';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { RawConnection, requestText } from '../harness/devices/raw.ts';
import { expectError, valuesOf } from '../harness/devices/routes.ts';
import { TestServer } from '../harness/server/server.ts';

let server: TestServer;
let fleet: TestFleet;
let device: TestDevice;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
  device = await fleet.createDevice();
});
const verbs = ['ack', 'reject', 'requeue'] as const;
const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

interface ListedMail {
  mail_id: string;
  name: string;
  accepted_at: string;
  expires_at: string;
  fetch_count: number;
  first_fetched_at: string | null;
  requeue_count: number;
}

/** The mailbox as an operator sees it, head first. */
async function listMail(of: TestDevice): Promise<ListedMail[]> {
  const { body } = await of.server.admin<{ items: ListedMail[] }>('GET', `${of.adminPath}/mail?limit=1000`);
  return body.items;
}

/** A fresh device with that many mails, in order. */
async function deviceWith(mails: number, inFleet = fleet): Promise<{ to: TestDevice; ids: string[] }> {
  const to = await inFleet.createDevice();
  const ids: string[] = [];
  for (let mail = 0; mail < mails; mail += 1) ids.push((await to.sendMail(`mail-${mail}`)).mailId);
  return { to, ids };
}

/** Fetches and acknowledges until the mailbox is empty; answers the ids in order. */
async function drain(of: TestDevice): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const { status, headers } = await of.next();
    if (status === 204) return ids;
    const id = headers.get('x-mail-id') ?? '';
    ids.push(id);
    await of.settle('ack', id);
  }
}

const sizeOf = ({ headers }: { headers: Headers }): string | null => headers.get('x-mailbox-size');

describe('D13, section 4: GET and HEAD /v1/mailbox/next', () => {
  it('D13: with mail: 200, the payload as body, size, name and id as headers', async () => {
    const to = await fleet.createDevice();
    const { mailId } = await to.sendMail('greeting', '{"text":"hello"}');
    await to.sendMail('second', '{}');
    const { status, headers, text } = await to.next();
    expect([status, text]).toEqual([200, '{"text":"hello"}']);
    expect(headers.get('x-mailbox-size')).toBe('2');
    expect(headers.get('x-mail-name')).toBe('greeting');
    expect(headers.get('x-mail-id')).toBe(mailId);
    expect(mailId).toMatch(uuidV7);
  });

  it('D13: the payload of mail without one is {}', async () => {
    for (const payload of ['', 'null', '{}']) {
      const to = await fleet.createDevice();
      expect((await to.sendMail('bare', payload)).status).toBe(201);
      expect((await to.next()).text).toBe('{}');
    }
  });

  it('D13: ?shape=envelope answers id, msg_id, name and payload, with the same headers', async () => {
    const to = await fleet.createDevice();
    const { mailId } = await to.sendMail('greeting', '{"text":"hello"}');
    const { status, headers, json } = await to.next('?shape=envelope');
    expect(status).toBe(200);
    expect(json).toEqual({ id: mailId, msg_id: mailId, name: 'greeting', payload: { text: 'hello' } });
    expect([headers.get('x-mail-id'), headers.get('x-mail-name')]).toEqual([mailId, 'greeting']);
    expect(Object.keys(json)).toEqual(['id', 'msg_id', 'name', 'payload']);
  });

  it.each(['', '?shape=envelope'])(
    'D13, section 3 rule 1: empty: 204 without a body byte or a length, name and id there and empty %s',
    async (query) => {
      const to = await fleet.createDevice();
      const connection = await RawConnection.open(server);
      for (const method of ['GET', 'HEAD']) {
        connection.write(requestText(method, `/v1/mailbox/next${query}`, { ...to.credentials }));
        const answer = await connection.answer(method === 'HEAD');
        expect(answer.status).toBe(204);
        expect(valuesOf(answer, 'x-mailbox-size')).toEqual(['0']);
        expect(valuesOf(answer, 'x-mail-name')).toEqual(['']);
        expect(valuesOf(answer, 'x-mail-id')).toEqual(['']);
        expect(valuesOf(answer, 'content-length')).toEqual([]);
        expect(valuesOf(answer, 'transfer-encoding')).toEqual([]);
      }
      // Had a body followed, it would stand before the next answer.
      connection.write(requestText('GET', '/v1/mailbox/size', { ...to.credentials }));
      expect((await connection.answer()).body).toBe('{"size":0}');
      expect(connection.text).toBe('');
      connection.destroy();
    },
  );

  it('D13: HEAD with mail: 200 and the headers of GET, no body', async () => {
    const to = await fleet.createDevice();
    const { mailId } = await to.sendMail('greeting', '{"text":"hello"}');
    const connection = await RawConnection.open(server);
    connection.write(requestText('HEAD', '/v1/mailbox/next', { ...to.credentials }));
    const answer = await connection.answer(true);
    expect(answer.status).toBe(200);
    expect(valuesOf(answer, 'x-mailbox-size')).toEqual(['1']);
    expect(valuesOf(answer, 'x-mail-name')).toEqual(['greeting']);
    expect(valuesOf(answer, 'x-mail-id')).toEqual([mailId]);
    connection.write(requestText('GET', '/v1/mailbox/size', { ...to.credentials }));
    expect((await connection.answer()).body).toBe('{"size":1}');
    connection.destroy();
  });

  it('D13, section 3: a GET is a peek: the same mail comes again until it is handled', async () => {
    const { to, ids } = await deviceWith(2);
    for (let fetch = 0; fetch < 3; fetch += 1) {
      const answer = await to.next();
      expect([answer.headers.get('x-mail-id'), sizeOf(answer)]).toEqual([ids[0], '2']);
    }
    await to.settle('ack', ids[0] ?? '');
    expect((await to.next()).headers.get('x-mail-id')).toBe(ids[1]);
  });

  it('D13: fetches are counted, with the time of the first, and written a few seconds later', async () => {
    const { to } = await deviceWith(1);
    const beforeMs = Date.now();
    for (let fetch = 0; fetch < 3; fetch += 1) await to.next();
    const afterMs = Date.now();
    await expect.poll(async () => (await listMail(to))[0]?.fetch_count).toBe(3);
    const firstMs = Date.parse((await listMail(to))[0]?.first_fetched_at ?? '');
    expect(firstMs).toBeGreaterThanOrEqual(beforeMs);
    expect(firstMs).toBeLessThanOrEqual(afterMs);
    await to.next();
    await expect.poll(async () => (await listMail(to))[0]?.fetch_count).toBe(4);
    expect(Date.parse((await listMail(to))[0]?.first_fetched_at ?? '')).toBe(firstMs);
  });

  it('D13: last-seen times are written a few seconds later', async () => {
    const to = await fleet.createDevice();
    const seen = async () =>
      (await server.admin<{ last_seen: string | null }>('GET', to.adminPath)).body.last_seen;
    expect(await seen()).toBeNull();
    const beforeMs = Date.now();
    await to.heartbeat();
    await expect
      .poll(async () => Date.parse((await seen()) ?? '1970-01-01'))
      .toBeGreaterThanOrEqual(beforeMs);
  });
});

describe('D14: order', () => {
  it('D14: first in, first out by the time the mailbox accepted the mail', async () => {
    const to = await fleet.createDevice();
    const sent = await Promise.all(Array.from({ length: 50 }, () => to.sendMail()));
    const inOrder = sent.toSorted((one, other) => one.size - other.size);
    expect(inOrder.map(({ size }) => size)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
    expect(await drain(to)).toEqual(inOrder.map(({ mailId }) => mailId));
  });

  it('D14: requeue puts the mail at the tail with the same id and one requeue more', async () => {
    const { to, ids } = await deviceWith(3);
    const [first = '', second, third] = ids;
    const answer = await to.settle('requeue', first);
    expect([answer.status, answer.text, sizeOf(answer)]).toEqual([200, '{"ok":true}', '3']);
    const listed = await listMail(to);
    expect(listed.map(({ mail_id }) => mail_id)).toEqual([second, third, first]);
    expect(listed.map(({ requeue_count }) => requeue_count)).toEqual([0, 0, 1]);
    await to.sendMail('latest');
    expect((await drain(to)).slice(0, 3)).toEqual([second, third, first]);
  });

  it('D14: a sole mail is head again at once', async () => {
    const { to, ids } = await deviceWith(1);
    const [id = ''] = ids;
    expect(sizeOf(await to.settle('requeue', id))).toBe('1');
    expect((await to.next()).headers.get('x-mail-id')).toBe(id);
  });

  it('D14: a repeated requeue is simply done again', async () => {
    const { to, ids } = await deviceWith(2);
    const [first = '', second] = ids;
    for (let time = 0; time < 3; time += 1) expect((await to.settle('requeue', first)).status).toBe(200);
    const listed = await listMail(to);
    expect(listed.map(({ mail_id, requeue_count }) => [mail_id, requeue_count])).toEqual([
      [second, 0],
      [first, 3],
    ]);
  });

  it('D7: a requeue counts the payload, which is written anew, for the bytes of its device', async () => {
    const limited = await createFleet(server, { device_bytes_per_second_max: 100 });
    const to = await limited.createDevice();
    const { mailId } = await to.sendMail('large', `{"text":"${'x'.repeat(60_000)}"}`);
    expect((await to.settle('requeue', mailId)).status).toBe(200);
    const refused = await to.settle('requeue', mailId);
    expectError(refused, 429, 'rate_limited');
    expect(refused.json.msg).toContain('(deviceBytesPerSecondMax)');
    expect((await listMail(to))[0]?.requeue_count).toBe(1);
    expect((await to.settle('ack', mailId)).status).toBe(200);
  });

  it('D14: a mail that was requeued is settled like any other', async () => {
    const { to, ids } = await deviceWith(2);
    const [first = '', second = ''] = ids;
    await to.settle('requeue', first);
    expect(sizeOf(await to.settle('ack', first))).toBe('1');
    expect(await drain(to)).toEqual([second]);
  });
});

describe('D15: ack, reject and requeue', () => {
  it.each(verbs)('D15, section 3: %s answers 200, ok and the new size', async (verb) => {
    const { to, ids } = await deviceWith(2);
    const answer = await to.settle(verb, ids[0] ?? '');
    expect([answer.status, answer.text]).toEqual([200, '{"ok":true}']);
    const left = verb === 'requeue' ? '2' : '1';
    expect([sizeOf(answer), sizeOf(await to.next())]).toEqual([left, left]);
  });

  it.each(verbs)('D15: %s takes any mail of the mailbox, not only the head', async (verb) => {
    const { to, ids } = await deviceWith(3);
    const [first = '', middle = '', last = ''] = ids;
    expect((await to.settle(verb, middle)).status).toBe(200);
    expect(await drain(to)).toEqual(verb === 'requeue' ? [first, last, middle] : [first, last]);
  });

  it.each(verbs)('D15: %s of a malformed id: 400 invalid_mail_id with the size', async (verb) => {
    const { to } = await deviceWith(1);
    const version4 = '9b2f5b0e-6c1e-4c44-8a57-1f0f4b6f0d52';
    for (const id of ['x', '1', uuidv7().slice(1), `${uuidv7()}0`, version4, `{${uuidv7()}}`, '%00']) {
      const answer = await to.settle(verb, id);
      expectError(answer, 400, 'invalid_mail_id');
      expect(sizeOf(answer)).toBe('1');
    }
  });

  it.each(verbs)('D15: %s of an id that was never there: 404 mail_not_found with the size', async (verb) => {
    const { to } = await deviceWith(1);
    const answer = await to.settle(verb, uuidv7());
    expectError(answer, 404, 'mail_not_found');
    expect(sizeOf(answer)).toBe('1');
  });

  it.each(verbs)('D15: %s of mail of another device: 404, and the mail stays', async (verb) => {
    const { to, ids } = await deviceWith(1);
    const { to: other } = await deviceWith(1);
    const [id = ''] = ids;
    expectError(await other.settle(verb, id), 404, 'mail_not_found');
    expect((await listMail(to)).map(({ mail_id, requeue_count }) => [mail_id, requeue_count])).toEqual([
      [id, 0],
    ]);
  });

  it.each(['ack', 'reject'] as const)(
    'D15: the same verb again on a settled mail is 200: %s',
    async (verb) => {
      const { to, ids } = await deviceWith(2);
      const [id = ''] = ids;
      await to.settle(verb, id);
      await to.sendMail();
      for (let time = 0; time < 2; time += 1) {
        const answer = await to.settle(verb, id);
        expect([answer.status, answer.text, sizeOf(answer)]).toEqual([200, '{"ok":true}', '2']);
      }
    },
  );

  it.each([
    ['ack', 'reject'],
    ['ack', 'requeue'],
    ['reject', 'ack'],
    ['reject', 'requeue'],
  ] as const)('D15: after %s, %s is 409 mail_already_settled with the size', async (verb, other) => {
    const { to, ids } = await deviceWith(2);
    const [id = ''] = ids;
    await to.settle(verb, id);
    const answer = await to.settle(other, id);
    expectError(answer, 409, 'mail_already_settled');
    expect(sizeOf(answer)).toBe('1');
    expect((await to.settle(verb, id)).status).toBe(200);
  });

  it('D15: the 32 mails settled last are remembered, and one more is not', async () => {
    expect(settledMax).toBe(32);
    const { to, ids } = await deviceWith(34);
    for (const id of ids.slice(0, 33)) await to.settle('ack', id);
    const [forgotten = '', oldest = ''] = ids;
    expectError(await to.settle('ack', forgotten), 404, 'mail_not_found');
    expect((await to.settle('ack', oldest)).status).toBe(200);
    // A repeat is no settling: it pushes nothing out.
    expect((await to.settle('ack', oldest)).status).toBe(200);
    expectError(await to.settle('reject', oldest), 409, 'mail_already_settled');
  });

  it('D15: two acknowledgements at once are both 200 and take one mail', async () => {
    const { to, ids } = await deviceWith(2);
    const [id = ''] = ids;
    const answers = await Promise.all([to.settle('ack', id), to.settle('ack', id), to.settle('ack', id)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(sizeOf(await to.next())).toBe('1');
  });
});

describe('D16: limits', () => {
  it('D16: 1,000 mails and 7 days unless a fleet says otherwise; at most 65,535 mails', async () => {
    expect([configDefault('mailboxMailsMax'), configDefault('mailTtlSeconds')]).toEqual([1_000, 604_800]);
    const { body } = await server.admin('GET', `/fleets/${fleet.fleetId}`);
    expect(body).toMatchObject({ mailbox_mails_max: 1_000, mail_ttl_seconds: 604_800 });
    const { to } = await deviceWith(1);
    const [mail] = await listMail(to);
    expect(Date.parse(mail?.expires_at ?? '') - Date.parse(mail?.accepted_at ?? '')).toBe(604_800_000);
    const path = `/fleets/${fleet.fleetId}`;
    expect((await server.admin('PATCH', path, { mailbox_mails_max: 65_536 })).status).toBe(400);
    expect((await server.admin('PATCH', path, { mailbox_mails_max: 0 })).status).toBe(400);
    expect((await to.sendMail('note', '{}', '?mailbox_mails_max=65536')).status).toBe(400);
    expect((await to.sendMail('note', '{}', '?mailbox_mails_max=65535')).status).toBe(201);
  });

  it('D16: a mailbox takes 1,000 mails, refuses the next and drops none', async () => {
    const to = await fleet.createDevice();
    const answers = await Promise.all(Array.from({ length: 1_010 }, () => to.sendMail()));
    const queued = answers.filter(({ status }) => status === 201);
    const refused = answers.filter(({ status }) => status !== 201);
    expect([queued.length, refused.length]).toEqual([1_000, 10]);
    for (const { status, body } of refused) expect([status, body.error]).toEqual([409, 'mailbox_full']);
    const expected = queued.toSorted((one, other) => one.size - other.size).map(({ mailId }) => mailId);
    expect((await listMail(to)).map(({ mail_id }) => mail_id)).toEqual(expected);
    await to.settle('ack', expected[0] ?? '');
    expect((await to.sendMail()).size).toBe(1_000);
  });

  it('D16: a fleet has its own limit, and changes it', async () => {
    const small = await createFleet(server, { mailbox_mails_max: 2 });
    const { to } = await deviceWith(2, small);
    expect((await to.sendMail()).body.error).toBe('mailbox_full');
    await server.admin('PATCH', `/fleets/${small.fleetId}`, { mailbox_mails_max: 3 });
    expect((await to.sendMail()).size).toBe(3);
    expect((await to.sendMail()).status).toBe(409);
  });

  it('D16: a mail overrides the limit of its fleet', async () => {
    const small = await createFleet(server, { mailbox_mails_max: 2 });
    const { to } = await deviceWith(2, small);
    expect((await to.sendMail('urgent', '{}', '?mailbox_mails_max=3')).size).toBe(3);
    expect((await to.sendMail('urgent', '{}', '?mailbox_mails_max=3')).status).toBe(409);
    expect((await to.sendMail('modest', '{}', '?mailbox_mails_max=1')).status).toBe(409);
  });

  it('D16: a mail whose life is over leaves the mailbox, wherever in it it is; the others stay', async () => {
    const { to, ids } = await deviceWith(2);
    const { mailId: brief } = await to.sendMail('brief', '{}', '?ttl_seconds=1');
    const { mailId: last } = await to.sendMail();
    expect((await to.next()).headers.get('x-mailbox-size')).toBe('4');
    await expect.poll(async () => sizeOf(await to.next())).toBe('3');
    expectError(await to.settle('ack', brief), 404, 'mail_not_found');
    expect(await drain(to)).toEqual([...ids, last]);
  });

  it('D16: a fleet has its own life of mail, a mail overrides it, and requeuing does not lengthen it', async () => {
    const brief = await createFleet(server, { mail_ttl_seconds: 1 });
    const { to, ids } = await deviceWith(2, brief);
    const { mailId: kept } = await to.sendMail('kept', '{}', '?ttl_seconds=100');
    await to.settle('requeue', ids[0] ?? '');
    await expect.poll(async () => (await to.next()).headers.get('x-mail-id')).toBe(kept);
    await expect.poll(async () => sizeOf(await to.next())).toBe('1');
    expect((await to.heartbeat()).headers.get('x-messages-available')).toBe('true');
  });
});

it('section 4: GET /v1/mailbox/size', async () => {
  expect((await device.request('GET', '/v1/mailbox/size')).text).toBe('{"size":0}');
  const { mailId } = await device.sendMail();
  const answer = await device.request('GET', '/v1/mailbox/size');
  expect([answer.status, answer.text, sizeOf(answer)]).toEqual([200, '{"size":1}', '1']);
  await device.settle('reject', mailId);
  expect((await device.request('GET', '/v1/mailbox/size')).json).toEqual({ size: 0 });
});
