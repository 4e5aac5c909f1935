import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { configDefault } from '../../src/server/configuration/config.ts';
import { createFleet, oneConnection, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { closeStreams, EventStream } from '../harness/devices/event-stream.ts';
import { RawConnection, requestText } from '../harness/devices/raw.ts';
import { ask, expectError, valuesOf } from '../harness/devices/routes.ts';
import { shards, TestServer } from '../harness/server/server.ts';

let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
});
const patience = { timeout: 60_000, interval: 20 };
const accept = { Accept: 'text/event-stream' };

const rawConnections: RawConnection[] = [];
afterEach(async () => {
  await closeStreams();
  for (const connection of rawConnections.splice(0)) connection.destroy();
  await expect.poll(() => openCount(server), patience).toBe(0);
});

/** The open streams of each worker. */
async function streamCounts(of: TestServer): Promise<number[]> {
  const text = await (await fetch(`${of.report.admin_url}/metrics`)).text();
  return [...text.matchAll(/^fleetpost_streams_open\{.*\} (\d+)$/gm)].map(([, count]) => Number(count));
}

async function openCount(of: TestServer): Promise<number> {
  return (await streamCounts(of)).reduce((sum, count) => sum + count, 0);
}

async function connectRaw(to = server): Promise<RawConnection> {
  const connection = await RawConnection.open(to);
  rawConnections.push(connection);
  return connection;
}

async function openRaw(device: TestDevice): Promise<RawConnection> {
  const connection = await connectRaw(device.server);
  connection.write(requestText('GET', '/v1/events', { ...device.credentials, ...accept }));
  await expect.poll(() => connection.text, patience).toContain('event: connected\n');
  return connection;
}

/** Tells whether a client can know that no event will come any more. */
function isOver({ isClosed, text }: RawConnection): boolean {
  return isClosed || /^HTTP\/1\.1 401 |content-length: 0\r\n|\r\n0\r\n\r\n$/i.test(text);
}

describe('D20, section 6: what a stream says', () => {
  it('D20, section 5.7: it is 200 text/event-stream and opens with retry, then connected', async () => {
    const device = await fleet.createDevice();
    const connection = await openRaw(device);
    const opening = connection.text.slice(connection.text.indexOf('\r\n\r\n') + 4);
    const answer = await connection.answer();
    expect(answer.status).toBe(200);
    expect(valuesOf(answer, 'content-type')).toEqual(['text/event-stream']);
    expect(valuesOf(answer, 'cache-control')).toEqual(['no-store']);
    const events = unchunked(opening).split('\n\n');
    expect(events[0]).toMatch(/^retry: \d+$/);
    expect(events[1]).toMatch(/^event: connected\ndata: \{.*\}$/);
  });

  it('D20: retry is drawn for each stream, between 2,500 and 7,500', async () => {
    const device = await fleet.createDevice();
    const drawn = new Set<number>();
    for (let i = 0; i < 8; i += 1) {
      const { text } = await openRaw(device);
      const [, retry] = /\nretry: (\d+)\n\n/.exec(text) ?? [];
      expect(Number(retry)).toBeGreaterThanOrEqual(2_500);
      expect(Number(retry)).toBeLessThanOrEqual(7_500);
      drawn.add(Number(retry));
    }
    expect(drawn.size).toBeGreaterThan(1);
  });

  it('D20: connected tells fleet, device and mailbox size, once', async () => {
    const device = await fleet.createDevice();
    const stream = await EventStream.open(device);
    await device.sendMail();
    await stream.has('new_mail', 1);
    const { fleetId: fleet_id, deviceId: device_id } = device;
    expect(stream.of('connected').map(({ data }) => data)).toEqual([
      { fleet_id, device_id, mailbox_size: 0 },
    ]);
  });

  it('D20: new_mail has an integer id, and the id, name and mailbox size of the mail that arrived', async () => {
    const device = await fleet.createDevice();
    const stream = await EventStream.open(device);
    const first = await device.sendMail('greeting', '{"text":"a\\nb"}');
    const second = await device.sendMail('farewell');
    const events = await stream.has('new_mail', 2);
    expect(events.map(({ data }) => data)).toEqual([
      { id: first.mailId, name: 'greeting', mailbox_size: 1 },
      { id: second.mailId, name: 'farewell', mailbox_size: 2 },
    ]);
    for (const { id } of events) expect(id).toMatch(/^\d+$/);
  });

  it('D20: if the mailbox is not empty, new_mail for its head follows at once, for no other', async () => {
    const device = await fleet.createDevice();
    const head = await device.sendMail('first');
    await device.sendMail('second');
    const stream = await EventStream.open(device);
    const later = await device.sendMail('third');
    const [announced, next] = await stream.has('new_mail', 2);
    expect(stream.received[0]?.data.mailbox_size).toBe(2);
    expect(announced?.data).toEqual({ id: head.mailId, name: 'first', mailbox_size: 2 });
    expect(next?.data).toEqual({ id: later.mailId, name: 'third', mailbox_size: 3 });
  });

  it('D20: the id of an event is the same for the same mail on every stream', async () => {
    const device = await fleet.createDevice();
    const live = await EventStream.open(device);
    await device.sendMail();
    const [announced] = await live.has('new_mail', 1);
    const [again] = await (await EventStream.open(device)).has('new_mail', 1);
    expect(again?.id).toBe(announced?.id);
  });

  it('section 3: a mail that is announced is there to be fetched, on any connection', async () => {
    const device = await fleet.createDevice();
    const stream = await EventStream.open(device);
    const agents = [1, 2, 3].map(() => oneConnection(server));
    for (let mail = 1; mail <= 30; mail += 1) {
      void device.sendMail();
      const event = (await stream.has('new_mail', mail))[mail - 1];
      const agent = agents[mail % agents.length];
      const { status, headers } = await device.request('GET', '/v1/mailbox/next', undefined, {}, agent);
      expect([status, headers.get('x-mail-id')]).toEqual([200, event?.data.id]);
      await device.settle('ack', String(event?.data.id), agent);
    }
    await Promise.all(agents.map((agent) => agent.destroy()));
  });

  it('section 6: only new mail is announced: no settling, no mail of another device', async () => {
    const [device, other] = [await fleet.createDevice(), await fleet.createDevice()];
    const stream = await EventStream.open(device);
    await other.sendMail('theirs');
    const first = await device.sendMail('ours');
    await device.settle('requeue', first.mailId);
    await device.settle('ack', first.mailId);
    await device.sendMail('ours again');
    const last = await device.sendMail('ours-too');
    const events = await stream.has('new_mail', 2);
    expect(events.map(({ data }) => data.id)).toEqual([first.mailId, last.mailId]);
  });
});

describe('D20: keep_alive', () => {
  it('D20, section 8: it comes every 30 s unless configured otherwise', () => {
    expect(configDefault('streamKeepAliveSeconds')).toBe(30);
  });
});

describe('D21: who may have a stream', () => {
  it.each([
    'text/event-stream',
    'TEXT/Event-Stream',
    'text/event-stream;q=0.1',
    'text/html, text/event-stream',
    'text/*',
    '*/*',
    'application/json;q=0.5, */*;q=0.1',
  ])('D21: Accept: %s allows it', async (Accept) => {
    const device = await fleet.createDevice();
    const route = { method: 'GET', path: '/v1/events' };
    expect((await ask(server, route, { ...device.credentials, Accept })).status).toBe(200);
  });

  it('D21: without Accept it is allowed', async () => {
    const device = await fleet.createDevice();
    const connection = await RawConnection.open(server);
    connection.write(requestText('GET', '/v1/events', { ...device.credentials }));
    await expect.poll(() => connection.text, patience).toContain('event: connected');
    expect(connection.text).toMatch(/^HTTP\/1.1 200 /);
    connection.destroy();
  });

  it.each([
    'text/html',
    'application/json',
    'text/event-streams',
    'text/event-stream;q=0',
    'text/event-stream; q=0.000',
    'application/*',
    'nonsense',
  ])('D21: Accept: %s does not: 400 bad_request', async (Accept) => {
    const device = await fleet.createDevice();
    const route = { method: 'GET', path: '/v1/events' };
    const answer = await ask(server, route, { ...device.credentials, Accept });
    expectError(answer, 400, 'bad_request');
    expect(valuesOf(answer, 'content-type')).toEqual(['application/json']);
  });

  it('D21: what Accept says of event streams themselves outweighs what it says of everything', async () => {
    const device = await fleet.createDevice();
    const Accept = 'text/event-stream;q=0, */*';
    const route = { method: 'GET', path: '/v1/events' };
    expectError(await ask(server, route, { ...device.credentials, Accept }), 400, 'bad_request');
  });
});

describe('D21: streams of one device', () => {
  it('section 6: mail reaches every stream of the device, on whatever workers they are', async () => {
    const device = await fleet.createDevice();
    const streams: EventStream[] = [];
    for (let stream = 0; stream < 4; stream += 1) streams.push(await EventStream.open(device));
    // The acceptor deals connections round robin, so that the four are on all of up to four workers.
    await expect
      .poll(async () => (await streamCounts(server)).filter((count) => count > 0).length)
      .toBe(shards);
    const sent = [await device.sendMail('a'), await device.sendMail('b'), await device.sendMail('c')];
    for (const stream of streams) {
      const events = await stream.has('new_mail', 3);
      expect(events.map(({ data }) => data.id)).toEqual(sent.map(({ mailId }) => mailId));
    }
  });

  it('D21: a fifth stream closes the oldest, and only that', async () => {
    const device = await fleet.createDevice();
    const streams: EventStream[] = [];
    for (let stream = 0; stream < 6; stream += 1) {
      streams.push(await EventStream.open(device));
      const over = Math.max(0, stream - 3);
      await expect
        .poll(() => streams.map(({ isOver }) => isOver), patience)
        .toEqual(streams.map((_, index) => index < over));
    }
    await device.sendMail();
    for (const stream of streams.slice(2)) await stream.has('new_mail', 1);
    for (const stream of streams.slice(0, 2)) expect(stream.of('new_mail')).toEqual([]);
  });

  it('D21: of many streams that are opened at once four stay, and every other is ended', async () => {
    const device = await fleet.createDevice();
    const connections = await Promise.all(Array.from({ length: 24 }, () => connectRaw()));
    for (const connection of connections) {
      connection.write(requestText('GET', '/v1/events', { ...device.credentials, ...accept }));
    }
    // Sooner than the library closes a connection on which nothing happens.
    await expect.poll(() => connections.filter(isOver).length).toBe(20);
    for (const one of connections) {
      if (!isOver(one)) await expect.poll(() => one.text, patience).toContain('event: connected\n');
    }
  });

  it('D21: a stream that ended makes room for another', async () => {
    const device = await fleet.createDevice();
    const streams: EventStream[] = [];
    for (let stream = 0; stream < 4; stream += 1) streams.push(await EventStream.open(device));
    await streams[2]?.close();
    await expect.poll(() => openCount(server), patience).toBe(3);
    await EventStream.open(device);
    await device.sendMail();
    for (const stream of streams.toSpliced(2, 1)) await stream.has('new_mail', 1);
  });

  it.each([
    [
      'disabled',
      'device_disabled',
      (device: TestDevice) => server.admin('PATCH', device.adminPath, { enabled: false }),
    ],
    ['deleted', 'device_not_found', (device: TestDevice) => server.admin('DELETE', device.adminPath)],
    [
      're-keyed',
      'device_secret_incorrect',
      (device: TestDevice) => server.admin('POST', `${device.adminPath}/rotate-secret`),
    ],
  ])('D21: all streams of a device that is %s are closed within a second', async (_, detail, change) => {
    const [device, bystander] = [await fleet.createDevice(), await fleet.createDevice()];
    const other = await EventStream.open(bystander);
    const streams: EventStream[] = [];
    for (let stream = 0; stream < 4; stream += 1) streams.push(await EventStream.open(device));
    await change(device);
    await expect
      .poll(() => streams.every(({ isOver }) => isOver), { timeout: 1_000, interval: 20 })
      .toBe(true);
    const route = { method: 'GET', path: '/v1/events' };
    const again = await ask(server, route, { ...device.credentials, ...accept });
    expectError(again, 401, 'unauthorized', { detail });
    await bystander.sendMail();
    await other.has('new_mail', 1);
  });

  it('D21: a stream that is being opened while its device is disabled does not outlive it', async () => {
    for (let round = 0; round < 30; round += 1) {
      const device = await fleet.createDevice();
      const connections = await Promise.all(Array.from({ length: 12 }, () => connectRaw()));
      const disabled = server.admin('PATCH', device.adminPath, { enabled: false });
      for (const connection of connections) {
        connection.write(requestText('GET', '/v1/events', { ...device.credentials, ...accept }));
        // Spread over the time that disabling takes.
        await new Promise((resolve) => setTimeout(resolve, 0));
      }
      await disabled;
      await expect
        .poll(() => connections.filter((one) => !isOver(one)).length, { timeout: 1_000, interval: 10 })
        .toBe(0);
    }
  });

  it('D21: a change of a device that leaves it enabled and its secret alone closes nothing', async () => {
    const device = await fleet.createDevice();
    const stream = await EventStream.open(device);
    await server.admin('PATCH', device.adminPath, { name: 'renamed', tags: ['a'], enabled: true });
    await device.sendMail();
    await stream.has('new_mail', 1);
    expect(stream.isOver).toBe(false);
  });

  it('D20, D21: a cut stream reconnects by itself, not at once, and finds its mail announced', async () => {
    const device = await fleet.createDevice();
    const stream = new EventStream(device, true);
    await stream.has('connected', 1);
    for (let newer = 0; newer < 4; newer += 1) await EventStream.open(device);
    await expect.poll(() => stream.isOver, patience).toBe(true);
    const { mailId } = await device.sendMail();
    const [first, second] = await stream.has('connected', 2);
    // The least that `retry` may be is 2,500; the first event may have been noticed late here.
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThan(1_500);
    expect((await stream.has('new_mail', 1)).map(({ data }) => data.id)).toEqual([mailId]);
  });
});

/** The text of a body that is still coming, without the framing of its chunks. */
function unchunked(body: string): string {
  return body.replaceAll(/(^|\r\n)[0-9a-f]+\r\n/g, '').replace(/\r\n$/, '');
}
