/** Actions on a server: triggers, order, failures, limits. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { anyObject, createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { closeStreams, EventStream } from '../../harness/devices/event-stream.ts';
import { numbers } from '../../harness/server/nodes.ts';
import { TestServer } from '../../harness/server/server.ts';

const patience = { timeout: 60_000, interval: 20 };

let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  // Retries come quickly here.
  server = await TestServer.start({ actionRetryMilliseconds: 20 });
});
beforeEach(async () => {
  fleet = await createFleet(server);
  for (const name of ['opened', 'other']) await fleet.putSchema('message', name, anyObject);
});
afterEach(closeStreams);
afterAll(() => server[Symbol.asyncDispose]());

async function putAction(name: string, source: string, more: object = {}): Promise<Record<string, unknown>> {
  const { status, body } = await fleet.putAction(name, source, more);
  if (status !== 200 && status !== 201) throw new Error(JSON.stringify(body));
  return body;
}

// biome-ignore lint/suspicious/noExplicitAny: a test asserts what it finds
async function ask(path: string, method = 'GET', document?: object): Promise<any> {
  return (await server.admin(method, `/fleets/${fleet.fleetId}/actions/${path}`, document)).body;
}

const byDevice = (a: { device?: unknown }, b: { device?: unknown }): number =>
  String(a.device).localeCompare(String(b.device));

async function open(door: TestDevice, body: object = {}): Promise<void> {
  expect((await door.request('POST', '/v1/msg/opened', body)).status).toBe(201);
}

const relay = (to: string) =>
  `export default async (record, fleet) => { await fleet.send('${to}', 'relayed', { n: record.payload.n }); }`;

describe('a message that makes things happen', () => {
  it('section 3: a door that opens has every lock with the tag hall checked, announced, fetched and acknowledged', async () => {
    const door = await fleet.createDevice({ name: 'front door' });
    const locks = [
      await fleet.createDevice({ tags: ['hall'] }),
      await fleet.createDevice({ tags: ['hall', 'new'] }),
    ];
    const cellar = await fleet.createDevice({ tags: ['cellar'] });
    await putAction(
      'check-locks',
      `import type { Action } from 'fleetpost/action';
       const action: Action<{ by: string }> = async (record, fleet) => {
         const door = await fleet.device(record.device);
         await fleet.sendToTag('hall', 'lock_check', { door: door?.name, by: record.payload.by });
         fleet.log('checked for', record.payload.by);
       };
       export default action;`,
      { language: 'typescript' },
    );
    const [lock = door] = locks;
    const stream = await EventStream.open(lock);
    await open(door, { by: 'guest' });
    const [event] = await stream.has('new_mail', 1);
    expect(event?.data).toMatchObject({ name: 'lock_check', mailbox_size: 1 });
    const next = await lock.next();
    expect(next.json).toEqual({ door: 'front door', by: 'guest' });
    expect(next.headers.get('x-mail-name')).toBe('lock_check');
    expect((await lock.settle('ack', String(next.headers.get('x-mail-id')))).status).toBe(200);
    await expect.poll(() => (locks[1] ?? door).mails(), patience).toHaveLength(1);
    expect(await cellar.mails()).toEqual([]);
    expect(await door.mails()).toEqual([]);
    await expect.poll(async () => (await ask('check-locks/runs')).items.length, patience).toBe(1);
    const [run] = (await ask('check-locks/runs')).items;
    expect(run).toMatchObject({
      device: door.deviceId,
      name: 'opened',
      outcome: 'done',
      mails: 2,
      attempt: 1,
    });
    expect((await ask('check-locks/logs')).items[0].text).toBe('checked for guest');
    // One run with its record and its mails: which each is, and what became of it.
    const mailId = next.headers.get('x-mail-id');
    const { items: waiting } = (
      await server.admin<{ items: { mail_id: string }[] }>('GET', `${locks[1]?.adminPath}/mail`)
    ).body;
    const shown = async () => await ask(`check-locks/runs/${run.run}`);
    const states = async () => (await shown()).sent.map(({ state }: { state: string }) => state).toSorted();
    await expect.poll(states, patience).toEqual(['acked', 'queued']);
    const { sent, record } = await shown();
    expect(record).toMatchObject({ record_id: run.record_id, kind: 'message', payload: { by: 'guest' } });
    const toBe = [
      { device: lock.deviceId, name: 'lock_check', mail_id: mailId, state: 'acked' },
      { device: locks[1]?.deviceId, name: 'lock_check', mail_id: waiting[0]?.mail_id, state: 'queued' },
    ];
    expect(sent.toSorted(byDevice)).toEqual(toBe.toSorted(byDevice));
  });

  it('it runs for what it listens to and its filter takes, and for nothing from before it was there', async () => {
    const [door, window] = [await fleet.createDevice({ tags: ['front'] }), await fleet.createDevice()];
    const target = await fleet.createDevice();
    await open(door, { n: 0, loud: true });
    const filter = {
      tags: ['front', 'back'],
      payload: { type: 'object', properties: { loud: { const: true } }, required: ['loud'] },
    };
    await putAction('relay', relay(target.deviceId), { filter });
    await open(door, { n: 1, loud: true });
    await open(door, { n: 2, loud: false });
    await open(window, { n: 3, loud: true });
    await door.request('POST', '/v1/msg/other', { n: 4, loud: true });
    await door.request('POST', '/v1/datapoint/reading', { n: 5, loud: true });
    await open(door, { n: 6, loud: true });
    await expect.poll(() => numbers(target), patience).toEqual([1, 6]);
  });

  it('the messages of a device run in their order, however often each fails at first', async () => {
    const door = await fleet.createDevice();
    const target = await fleet.createDevice();
    await putAction(
      'moody',
      `export default async (record, fleet) => {
         if (Math.random() < 0.4) throw new Error('not now');
         await fleet.send('${target.deviceId}', 'relayed', { n: record.payload.n });
       }`,
    );
    await server.admin('PATCH', `/fleets/${fleet.fleetId}/actions/moody`, {});
    for (let n = 0; n < 30; n += 1) await open(door, { n });
    await expect
      .poll(async () => (await ask('moody')).behind + (await ask('moody')).in_hand, patience)
      .toBe(0);
    const arrived = await numbers(target);
    const { items: letters } = await ask('moody/dead-letters');
    expect(arrived).toEqual(arrived.toSorted((a, b) => a - b));
    expect(arrived.length + letters.length).toBe(30);
  });

  it('D31: mail that runs send under a key leaves the newest alone, and what was fetched', async () => {
    const door = await fleet.createDevice();
    const target = await fleet.createDevice();
    await putAction(
      'newest',
      `export default async (record, fleet) => {
         const { n } = record.payload;
         await fleet.send('${target.deviceId}', 'relayed', { n }, { replaceKey: 'n', ttlSeconds: 600 });
       }`,
    );
    for (let n = 0; n < 5; n += 1) await open(door, { n });
    await expect.poll(() => target.mails(), patience).toMatchObject([{ payload: { n: 4 } }]);
    await target.next();
    for (let n = 5; n < 8; n += 1) await open(door, { n });
    await expect
      .poll(() => target.mails(), patience)
      .toMatchObject([{ payload: { n: 4 } }, { payload: { n: 7 } }]);
  });

  it('state is counted right by runs of many devices side by side', async () => {
    const doors = await Promise.all(Array.from({ length: 12 }, () => fleet.createDevice()));
    const target = await fleet.createDevice();
    await putAction(
      'count',
      `export default async (record, fleet) => {
         const count = ((await fleet.state.get('count')) ?? 0) + 1;
         fleet.state.set('count', count);
         await fleet.send('${target.deviceId}', 'counted', { n: count });
       }`,
    );
    for (let n = 0; n < 5; n += 1) await Promise.all(doors.map((door) => open(door)));
    await expect.poll(async () => (await target.mails()).length, patience).toBe(60);
    const counted = (await numbers(target)).toSorted((a, b) => a - b);
    expect(counted).toEqual(Array.from({ length: 60 }, (_, index) => index + 1));
  });
});

describe('what fails', () => {
  it('a run that always fails becomes a dead letter, can be read, replayed with better code, and dropped', async () => {
    const door = await fleet.createDevice();
    const target = await fleet.createDevice();
    await putAction('broken', `export default () => { throw new TypeError('no such lock'); }`);
    await open(door, { n: 1 });
    await open(door, { n: 2 });
    await expect.poll(async () => (await ask('broken')).dead_letters, patience).toBe(2);
    const { items } = await ask('broken/dead-letters');
    expect(items[1]).toMatchObject({ device: door.deviceId, attempts: 5, error: { code: 'threw' } });
    expect(items[1].error.msg).toContain('no such lock');
    expect((await ask('broken/runs?outcome=failed')).items).toHaveLength(8);
    await putAction('broken', relay(target.deviceId));
    expect(await ask(`broken/dead-letters/${items[1].run}/replay`, 'POST')).toMatchObject({ replayed: 1 });
    await expect.poll(() => numbers(target), patience).toEqual([1]);
    expect(await ask('broken/dead-letters', 'DELETE')).toMatchObject({ dropped: 1 });
    await expect.poll(async () => (await ask('broken')).dead_letters, patience).toBe(0);
  });

  it('mail that a mailbox does not take becomes a dead letter by itself, and sent again when there is room', async () => {
    const door = await fleet.createDevice();
    const target = await fleet.createDevice();
    const gone = 'NOSUCHDEV1';
    await server.admin('PATCH', `/fleets/${fleet.fleetId}`, { mailbox_mails_max: 1 });
    await putAction(
      'full',
      `export default (record, fleet) => {
         fleet.send(['${target.deviceId}', '${gone}'], 'relayed', { n: record.payload.n });
       }`,
    );
    await open(door, { n: 1 });
    await open(door, { n: 2 });
    await expect.poll(async () => (await ask('full')).dead_letters, patience).toBe(2);
    const { items } = await ask('full/dead-letters');
    expect(items[0].error.code).toBe('mail_refused');
    const mails = async () => (await ask(`full/runs/${items[0].run}`)).sent;
    expect(await mails()).toEqual([
      { device: target.deviceId, name: 'relayed', mail_id: null, state: 'mailbox_full' },
      { device: gone, name: 'relayed', mail_id: null, state: 'device_not_found' },
    ]);
    expect(items[0].refused).toEqual([
      { device: target.deviceId, name: 'relayed', reason: 'mailbox_full' },
      { device: gone, name: 'relayed', reason: 'device_not_found' },
    ]);
    const head = await target.next();
    await target.settle('ack', String(head.headers.get('x-mail-id')));
    await ask(`full/dead-letters/${items[0].run}/replay`, 'POST');
    await expect.poll(() => numbers(target), patience).toEqual([2]);
    await expect.poll(mails, patience).toMatchObject([
      { mail_id: expect.any(String), state: 'queued' },
      { mail_id: null, state: 'device_not_found' },
    ]);
    await expect
      .poll(async () => (await ask('full/dead-letters')).items[0]?.refused.length, patience)
      .toBe(1);
  });

  it('an action that computes without end, one that takes all memory and one that floods hold up nobody', async () => {
    const [door, other] = [await fleet.createDevice(), await fleet.createDevice()];
    const target = await fleet.createDevice();
    const neighbour = await createFleet(server);
    await neighbour.putSchema('message', 'opened', anyObject);
    const bad = {
      loop: 'for (;;) {}',
      bomb: 'const all = []; for (;;) all.push(new Array(1000).fill(all.length));',
      flood: `for (let n = 0; n < 100000; n += 1) fleet.send('${other.deviceId}', 'flood', {});`,
    };
    for (const [name, body] of Object.entries(bad)) {
      await putAction(name, `export default (record, fleet) => { ${body} }`);
    }
    await putAction('relay', relay(target.deviceId));
    for (let n = 0; n < 4; n += 1) await open(door, { n });
    await expect.poll(() => numbers(target), patience).toEqual([0, 1, 2, 3]);
    for (const [name, code] of [
      ['loop', 'cpu_time_exceeded'],
      ['bomb', 'memory_exceeded'],
      ['flood', 'too_many_mails'],
    ]) {
      const failures = async () => (await ask(`${name}/runs?outcome=failed`)).items;
      await expect.poll(async () => (await failures())[0]?.error.code, patience).toBe(code);
    }
    expect(await other.mails()).toEqual([]);
    expect((await door.heartbeat()).status).toBe(201);
  });

  it('an action that triggers itself runs no faster than its rate, and shows it', async () => {
    const door = await fleet.createDevice();
    const target = await fleet.createDevice();
    await putAction('relay', relay(target.deviceId), { runs_per_second_max: 1 });
    for (let n = 0; n < 4; n += 1) await open(door, { n });
    await expect.poll(async () => (await ask('relay')).held, patience).toBe('limited');
    await expect.poll(() => numbers(target), patience).toEqual([0, 1, 2, 3]);
    expect((await ask('relay')).runs_last_minute).toBeGreaterThanOrEqual(4);
  });
});

describe('versions', () => {
  it('a disabled action takes no notice; enabled again it goes on with what comes', async () => {
    const door = await fleet.createDevice();
    const target = await fleet.createDevice();
    await putAction('relay', relay(target.deviceId));
    await open(door, { n: 1 });
    await expect.poll(() => numbers(target), patience).toEqual([1]);
    await ask('relay', 'PATCH', { enabled: false });
    await open(door, { n: 2 });
    await ask('relay', 'PATCH', { enabled: true });
    await open(door, { n: 3 });
    await expect.poll(() => numbers(target), patience).toEqual([1, 3]);
  });

  it('a version that fails its test is not deployed unless forced, and can be rolled back', async () => {
    const door = await fleet.createDevice();
    const target = await fleet.createDevice();
    const tests = [
      {
        record: { device: door.deviceId, payload: { n: 7 } },
        mails: [{ to: target.deviceId, name: 'relayed', payload: { n: 7 } }],
      },
    ];
    await putAction('relay', relay(target.deviceId), { tests });
    const broken = relay(target.deviceId).replace('record.payload.n', '-1');
    await expect(putAction('relay', broken, { tests })).rejects.toThrow(/action_test_failed.*Test 1 failed/);
    await open(door, { n: 1 });
    await expect.poll(() => numbers(target), patience).toEqual([1]);
    expect((await putAction('relay', broken, { tests, force: true })).version).toBe(2);
    await open(door, { n: 2 });
    await expect.poll(() => numbers(target), patience).toEqual([1, -1]);
    expect((await ask('relay/rollback', 'POST', { version: 1 })).version).toBe(1);
    await open(door, { n: 3 });
    await expect.poll(() => numbers(target), patience).toEqual([1, -1, 3]);
    // The count is of the action, whichever version ran.
    expect((await ask('relay')).runs_last_minute).toBe(3);
    await expect(putAction('relay', 'export default 3')).rejects.toThrow(/invalid_action/);
  });
});
