import { uuidv7 } from 'uuidv7';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, oneConnection, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { EventStream } from '../../harness/devices/event-stream.ts';
import { expectError } from '../../harness/devices/routes.ts';
import { type AdminAnswer, TestServer } from '../../harness/server/server.ts';

interface Receipt {
  state: string;
  deliver_at: string | null;
  queued_at: string | null;
  expires_at: string | null;
  fetch_count: number;
  first_fetched_at: string | null;
  requeue_count: number;
  settled_at: string | null;
}
interface Letter {
  mail_id: string;
  device_id: string;
  name: string;
  reason: string;
  payload_bytes: number;
}

let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  server = await TestServer.start({ activityFlushSeconds: 1, delayedMailsPerDeviceMax: 3 });
  fleet = await createFleet(server);
});
afterAll(() => server[Symbol.asyncDispose]());

async function receiptOf(device: TestDevice, mailId: string): Promise<Receipt> {
  const { status, body } = await server.admin<Receipt>('GET', `${device.adminPath}/mail/${mailId}`);
  expect(status).toBe(200);
  return body;
}

const withdraw = (device: TestDevice, mailId: string): Promise<AdminAnswer<Record<string, unknown>>> =>
  server.admin('DELETE', `${device.adminPath}/mail/${mailId}`);

async function letters(query = '', of = fleet): Promise<Letter[]> {
  const path = `/fleets/${of.fleetId}/dead-letters${query}`;
  return (await server.admin<{ items: Letter[] }>('GET', path)).body.items;
}

function act(verb: 'replay' | 'drop', body: object, of = fleet) {
  const path = `/fleets/${of.fleetId}/dead-letters:${verb}`;
  return server.admin<{
    items: { mail_id: string; result: string; new_mail_id?: string }[];
    next: string | null;
  }>('POST', path, body);
}

const soon = { timeout: 15_000, interval: 50 };
const later = (seconds: number): string =>
  `?deliver_at=${new Date(Date.now() + seconds * 1_000).toISOString()}`;

it('D13, D17: a fetch counts whichever connections the mail is ended by, and asked to be ended by again', async () => {
  const agents = Array.from({ length: 7 }, () => oneConnection(server));
  const mails = Array.from({ length: 8 }, async () => {
    const device = await fleet.createDevice();
    const { mailId } = await device.sendMail('order', '{}', '?requeues_max=0');
    await device.request('GET', '/v1/mailbox/next', undefined, {}, agents[0]);
    for (const agent of agents.slice(1)) {
      expect((await device.settle('requeue', mailId, agent)).status).toBe(200);
    }
    const ended = { state: 'over_requeued', fetch_count: 1 };
    await expect.poll(() => receiptOf(device, mailId), soon).toMatchObject(ended);
  });
  await Promise.all(mails);
  for (const agent of agents) await agent.close();
});

it('D17: a receipt tells when a mail was queued, fetched, requeued and acknowledged', async () => {
  const device = await fleet.createDevice();
  const { mailId } = await device.sendMail('order', '{}', '?ttl_seconds=60');
  const queued = await receiptOf(device, mailId);
  expect(queued).toMatchObject({ name: 'order', state: 'queued', fetch_count: 0, settled_at: null });
  expect(Date.parse(queued.expires_at ?? '') - Date.parse(queued.queued_at ?? '')).toBe(60_000);

  const agent = oneConnection(server);
  for (const verb of ['requeue', 'ack'] as const) {
    await device.request('GET', '/v1/mailbox/next', undefined, {}, agent);
    await device.settle(verb, mailId, agent);
    const count = verb === 'requeue' ? 1 : 2;
    // At once, but where the fetch is being noted by itself at this very moment.
    await expect
      .poll(() => receiptOf(device, mailId), soon)
      .toMatchObject({ fetch_count: count, requeue_count: 1, queued_at: queued.queued_at });
  }
  await agent.destroy();
  const acked = await receiptOf(device, mailId);
  expect(acked).toMatchObject({ state: 'acked', expires_at: null });
  const times = [acked.queued_at, acked.first_fetched_at, acked.settled_at].map((time) =>
    Date.parse(time ?? ''),
  );
  expect(times).toEqual([...times].sort((a, b) => a - b));
});

it('D17: a fetch over another connection than its answer is in the receipt when it is noted', async () => {
  const device = await fleet.createDevice();
  const { mailId } = await device.sendMail();
  for (let fetches = 0; fetches < 4; fetches += 1) {
    const agent = oneConnection(server);
    await device.request('GET', '/v1/mailbox/next', undefined, {}, agent);
    await agent.destroy();
  }
  await device.settle('ack', mailId);
  await expect.poll(() => receiptOf(device, mailId), soon).toMatchObject({ state: 'acked', fetch_count: 4 });
  expect((await receiptOf(device, mailId)).first_fetched_at).not.toBeNull();
});

it('D11, D16: the payload of one mail is shown byte for byte while it waits, and as a dead letter', async () => {
  const device = await fleet.createDevice();
  const payload = '{"n": 12345678901234567890}';
  const { mailId } = await device.sendMail('order', payload);
  const text = async () => {
    const url = `${server.report.admin_url}/admin/v1${device.adminPath}/mail/${mailId}/payload`;
    const answer = await fetch(url, { headers: { Authorization: `Bearer ${server.token}` } });
    return [answer.status, await answer.text()];
  };
  expect(await text()).toEqual([200, payload]);
  await device.settle('reject', mailId);
  expect(await text()).toEqual([200, payload]);
  await act('drop', { letters: [{ device_id: device.deviceId, mail_id: mailId }] });
  expect((await server.admin('GET', `${device.adminPath}/mail/${mailId}/payload`)).body.error).toBe(
    'mail_not_found',
  );
});

it('D17: there is a receipt for what was sent, and for nothing else', async () => {
  const device = await fleet.createDevice();
  const other = await fleet.createDevice();
  const { mailId } = await device.sendMail();
  expect((await server.admin('GET', `${device.adminPath}/mail/${uuidv7()}`)).status).toBe(404);
  expect((await server.admin('GET', `${other.adminPath}/mail/${mailId}`)).status).toBe(404);
  const malformed = await server.admin('GET', `${device.adminPath}/mail/1`);
  expect([malformed.status, malformed.body.error]).toEqual([400, 'invalid_mail_id']);
  await device.settle('ack', mailId);
  await server.admin('DELETE', device.adminPath);
  expect(await receiptOf(device, mailId)).toMatchObject({ state: 'acked' });
});

it('D16: rejected, expired and over-requeued mail is a dead letter, byte for byte', async () => {
  const own = await createFleet(server, { mail_requeues_max: 1 });
  const device = await own.createDevice();
  const payload = '{ "n": 12345678901234567890, "a":1.50 }';
  const rejected = (await device.sendMail('one', payload)).mailId;
  await device.settle('reject', rejected);
  const expired = (await device.sendMail('two', '{}', '?ttl_seconds=1')).mailId;
  const requeued = (await device.sendMail('three', payload)).mailId;
  const often = (await device.sendMail('four', '{}', '?requeues_max=2')).mailId;
  for (const mailId of [requeued, requeued, often, often]) {
    expect((await device.settle('requeue', mailId)).status).toBe(200);
  }
  // A lost answer is repeated; another verb is told.
  expect((await device.settle('requeue', requeued)).status).toBe(200);
  expectError(await device.settle('ack', requeued), 409, 'mail_already_settled');
  await expect.poll(() => letters('', own), soon).toHaveLength(3);

  expect((await letters('', own)).map(({ mail_id, name, reason }) => [mail_id, name, reason])).toEqual([
    [requeued, 'three', 'over_requeued'],
    [expired, 'two', 'expired'],
    [rejected, 'one', 'rejected'],
  ]);
  expect(await receiptOf(device, expired)).toMatchObject({ state: 'expired' });
  expect(await receiptOf(device, requeued)).toMatchObject({ state: 'over_requeued', requeue_count: 1 });
  expect(await receiptOf(device, often)).toMatchObject({ state: 'queued', requeue_count: 2 });
  const shown = await fetch(
    `${server.report.admin_url}/admin/v1/fleets/${own.fleetId}/dead-letters/${device.deviceId}/${rejected}`,
    { headers: { authorization: `Bearer ${server.token}` } },
  );
  expect(await shown.text()).toBe(payload);
  expect([shown.headers.get('x-mail-name'), shown.headers.get('x-mail-reason')]).toEqual(['one', 'rejected']);
});

it('D16: dead letters are filtered and paged, and each stands in one page', async () => {
  const own = await createFleet(server);
  const devices = await Promise.all(Array.from({ length: 6 }, () => own.createDevice()));
  for (const device of devices) {
    for (const name of ['a', 'b', 'a']) await device.settle('reject', (await device.sendMail(name)).mailId);
  }
  const all = await letters('', own);
  expect(all).toHaveLength(18);
  expect(all.map(({ mail_id }) => mail_id)).toEqual(
    all
      .map(({ mail_id }) => mail_id)
      .sort()
      .reverse(),
  );
  expect(await letters('?order=oldest', own)).toEqual(all.toReversed());
  const paged: Letter[] = [];
  let after = '';
  do {
    const path = `/fleets/${own.fleetId}/dead-letters?limit=4&name=a&after=${after}`;
    const { body } = await server.admin<{ items: Letter[]; next: string | null }>('GET', path);
    expect(body.items.length).toBeLessThanOrEqual(4);
    paged.push(...body.items);
    after = body.next ?? '';
  } while (after !== '');
  expect(paged).toEqual(all.filter(({ name }) => name === 'a'));
  const [first] = devices as [TestDevice];
  expect(await letters(`?device_id=${first.deviceId}&name=b`, own)).toHaveLength(1);
  expect(await letters('?reason=expired', own)).toEqual([]);
  const minuteAgo = new Date(Date.now() - 60_000).toISOString();
  expect(await letters(`?from=${minuteAgo}`, own)).toHaveLength(18);
  expect(await letters(`?to=${minuteAgo}`, own)).toEqual([]);
  const counted = await server.admin('GET', `/fleets/${own.fleetId}/dead-letters:count`);
  expect(counted.body).toMatchObject({
    letters: 18,
    is_all: true,
    groups: [
      { name: 'a', reason: 'rejected', letters: 12, last_died_at: expect.stringMatching(/Z$/) },
      { name: 'b', reason: 'rejected', letters: 6 },
    ],
  });
  const ofOne = await server.admin(
    'GET',
    `/fleets/${own.fleetId}/dead-letters:count?device_id=${first.deviceId}`,
  );
  expect(ofOne.body).toMatchObject({ letters: 3, groups: [{ letters: 2 }, { letters: 1 }] });
  expect((await server.admin('GET', `/fleets/${own.fleetId}/dead-letters?from=yesterday`)).status).toBe(400);
});

it('a call takes a thousand letters by their ids', async () => {
  const { deviceId: device_id } = await fleet.createDevice();
  const letters = Array.from({ length: 1_000 }, () => ({ device_id, mail_id: uuidv7() }));
  for (const verb of ['replay', 'drop'] as const) {
    const { status, body } = await act(verb, { letters });
    expect([status, new Set(body.items.map(({ result }) => result))]).toEqual([200, new Set(['not_found'])]);
  }
});

it('D16: a letter is replayed as a new mail, once, and is told why it cannot be', async () => {
  const own = await createFleet(server, { mailbox_mails_max: 1 });
  const [device, gone] = [await own.createDevice(), await own.createDevice()];
  const stream = await EventStream.open(device);
  const dead: string[] = [];
  for (const one of [device, device, gone]) {
    const { mailId } = await one.sendMail('order', '{"n":1.0}');
    await one.settle('reject', mailId);
    dead.push(mailId);
  }
  await server.admin('DELETE', gone.adminPath);
  const { body } = await act('replay', { filter: {} }, own);
  expect(body.items.map(({ mail_id, result }) => [mail_id, result])).toEqual([
    [dead[0], 'replayed'],
    [dead[1], 'mailbox_full'],
    [dead[2], 'device_not_found'],
  ]);
  const newId = body.items[0]?.new_mail_id ?? '';
  const next = await device.next();
  expect([next.headers.get('x-mail-id'), next.text]).toEqual([newId, '{"n":1.0}']);
  expect(await receiptOf(device, dead[0] ?? '')).toMatchObject({ state: 'rejected' });
  expect((await stream.has('new_mail', 3)).at(-1)?.data).toMatchObject({ id: newId });
  await stream.close();

  await device.settle('ack', newId);
  const again = { letters: [dead[0], dead[1]].map((mail_id) => ({ device_id: device.deviceId, mail_id })) };
  expect((await act('replay', again, own)).body.items.map(({ result }) => result)).toEqual([
    'not_found',
    'replayed',
  ]);
  expect((await act('drop', { filter: { name: 'other' } }, own)).body.items).toEqual([]);
  const leftOver = (await act('drop', { filter: {} }, own)).body.items;
  expect(leftOver.every(({ result }) => result === 'dropped')).toBe(true);
  expect(await letters('', own)).toEqual([]);
  expect((await act('drop', {}, own)).status).toBe(400);
});

it('D12, D16: a letter that does not match the schema of now stays', async () => {
  const own = await createFleet(server);
  const device = await own.createDevice();
  await device.settle('reject', (await device.sendMail('order', '{"n":1}')).mailId);
  await own.putSchema('mail', 'order', { type: 'object', required: ['m'] });
  expect((await act('replay', { filter: {} }, own)).body.items).toMatchObject([
    { result: 'schema_mismatch' },
  ]);
  expect(await letters('', own)).toHaveLength(1);
});

it('D14, D17: delayed mail keeps its id, and is accepted and announced when its time comes', async () => {
  const device = await fleet.createDevice();
  const stream = await EventStream.open(device);
  const delayed = await device.sendMail('later', '{"n":1}', `${later(2)}&ttl_seconds=600`);
  expect(delayed.body).toMatchObject({ state: 'delayed', mailbox_size: 0 });
  const present = await device.sendMail('now');
  const receipt = await receiptOf(device, delayed.mailId);
  expect(receipt).toMatchObject({ state: 'delayed', queued_at: null, expires_at: null });
  await expect
    .poll(async () => (await device.mails()).map(({ name }) => name), soon)
    .toEqual(['now', 'later']);
  const queued = await receiptOf(device, delayed.mailId);
  const at = (time: string | null): number => Date.parse(time ?? '');
  expect(at(queued.queued_at)).toBeGreaterThanOrEqual(at(receipt.deliver_at));
  expect(at(queued.expires_at) - at(queued.queued_at)).toBe(600_000);
  await device.settle('ack', present.mailId);
  const next = await device.next();
  expect([next.headers.get('x-mail-id'), next.text]).toEqual([delayed.mailId, '{"n":1}']);
  await device.settle('requeue', delayed.mailId);
  await device.settle('ack', delayed.mailId);
  expect(await receiptOf(device, delayed.mailId)).toMatchObject({ state: 'acked', requeue_count: 1 });
  expect((await stream.has('new_mail', 2)).at(-1)?.data).toMatchObject({
    id: delayed.mailId,
    mailbox_size: 2,
  });
  await stream.close();
});

it('D16: delayed mail whose mailbox is full when its time comes is a dead letter', async () => {
  const device = await fleet.createDevice();
  const { mailId } = await device.sendMail('later', '{}', `${later(1)}&mailbox_mails_max=1`);
  await device.sendMail('now');
  await expect
    .poll(() => receiptOf(device, mailId), soon)
    .toMatchObject({ state: 'mailbox_full', queued_at: null });
  expect(await letters(`?device_id=${device.deviceId}`)).toMatchObject([
    { mail_id: mailId, reason: 'mailbox_full' },
  ]);
});

it('delayed mail of a device is limited, and a time that cannot be is refused', async () => {
  const device = await fleet.createDevice();
  for (let count = 0; count < 3; count += 1) {
    expect((await device.sendMail('later', '{}', later(600))).status).toBe(201);
  }
  const refused = await device.sendMail('later', '{}', later(600));
  expect([refused.status, refused.body.error]).toEqual([409, 'limit_reached']);
  expect(refused.body.msg).toContain('delayedMailsPerDeviceMax');
  expect((await device.sendMail('now')).status).toBe(201);
  const at = `/fleets/${fleet.fleetId}/devices/${device.deviceId}`;
  const page = await server.admin('GET', `${at}/mail?state=delayed&limit=2`);
  expect(page.body.items).toMatchObject([
    { name: 'later', payload: {}, accepted_at: null, expires_at: null },
    { name: 'later' },
  ]);
  const rest = await server.admin('GET', `${at}/mail?state=delayed&limit=2&after=${page.body.next}`);
  expect(rest.body).toMatchObject({ items: [{ name: 'later' }], next: null });
  expect((await server.admin('GET', at)).body).toMatchObject({
    delayed_mails: 3,
    next_delivery_at: (page.body.items as { deliver_at: string }[])[0]?.deliver_at,
  });
  expect((await server.admin('GET', `${at}/mail`)).body.items).toMatchObject([
    { name: 'now', deliver_at: null },
  ]);
  for (const query of ['state=delayed&after=x', `state=queued&after=${page.body.next}`, 'state=acked'])
    expect((await server.admin('GET', `${at}/mail?${query}`)).status).toBe(400);
  for (const query of ['?deliver_at=tomorrow', '?deliver_at=2026-01-01', later(400_000_000)]) {
    expect((await device.sendMail('later', '{}', query)).status).toBe(400);
  }
  expect((await device.sendMail('past', '{}', later(-60))).body).toMatchObject({ state: 'queued' });
});

it('D15: withdrawn mail is gone, and a later answer to it is 409', async () => {
  const device = await fleet.createDevice();
  const ids = [
    await device.sendMail(),
    await device.sendMail(),
    await device.sendMail('x', '{}', later(600)),
  ].map(({ mailId }) => mailId);
  const [head, second, delayed] = ids as [string, string, string];
  await device.next();
  expect((await withdraw(device, head)).body).toMatchObject({ mailbox_size: 1 });
  expect((await withdraw(device, head)).status).toBe(200);
  expectError(await device.settle('ack', head), 409, 'mail_already_settled');
  expect((await device.next()).headers.get('x-mail-id')).toBe(second);
  expect((await withdraw(device, delayed)).status).toBe(200);
  for (const mailId of [head, delayed]) {
    expect(await receiptOf(device, mailId)).toMatchObject({ state: 'withdrawn' });
  }
  await device.settle('ack', second);
  const tooLate = await withdraw(device, second);
  expect([tooLate.status, tooLate.body.error]).toEqual([409, 'mail_already_settled']);
  expect(tooLate.body.msg).toContain('acked');
  expect((await withdraw(device, uuidv7())).status).toBe(404);
  expect(await letters(`?device_id=${device.deviceId}`)).toEqual([]);
});
