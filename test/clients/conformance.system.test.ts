/** The suite that each client of `clients` must pass, through a hostile network and `kill -9`. */

import { createHash, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { FakedClock } from '../harness/machine/faked-clock.ts';
import { SmallDisk } from '../harness/machine/small-disk.ts';
import { TestServer, temporaryFolder } from '../harness/server/server.ts';
import { pause, until } from '../harness/server/vitals.ts';
import { ClientProcess, clients } from './client-process.ts';
import { HostileRelay, type Weather } from './hostile-relay.ts';
import { OldServer } from './old-server.ts';

interface FoundRecord {
  kind: string;
  payload: { n: number };
  stored_at: string;
  recorded_at?: string;
}

interface FoundReceipt {
  mail_id: string;
  event: string;
}

const data = temporaryFolder();
let server: TestServer;
/** A session is resumed by the worker that made it: this one has no other. */
let ofOneWorker: TestServer;
let relay: HostileRelay;
beforeAll(async () => {
  [server, ofOneWorker] = await Promise.all([
    TestServer.start({ claiming: true }, data),
    TestServer.start({ shards: 1 }),
  ]);
  relay = await HostileRelay.open(server.port);
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
  for (const one of [server, ofOneWorker]) await one[Symbol.asyncDispose]();
});

describe.each(Object.entries(clients))('the %s client', (_, command) => {
  let fleet: TestFleet;
  beforeAll(async () => {
    relay.weather = 'pass';
    fleet = await createFleet(server);
  });

  const optionsOf = (device: TestDevice, more: object = {}): object => ({
    url: `https://127.0.0.1:${relay.port}`,
    fleet: device.fleetId,
    id: device.deviceId,
    secret: device.secret,
    ca: server.report.cert_file,
    queue: join(temporaryFolder(), 'queue.db'),
    start_delay_seconds: 0,
    retry_seconds_max: 0.5,
    ...more,
  });

  async function recordsOf(device: TestDevice): Promise<FoundRecord[]> {
    const url = `${server.report.admin_url}/admin/v1/fleets/${device.fleetId}/records?device=${device.deviceId}`;
    const answer = await fetch(url, { headers: { authorization: `Bearer ${server.token}` } });
    const lines = (await answer.text()).split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line));
  }

  /** Numbers that devices sent, in the order of the log. */
  const sentBy = async (device: TestDevice): Promise<number[]> =>
    (await recordsOf(device)).filter(({ kind }) => kind !== 'receipt').map(({ payload: { n } }) => n);

  const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

  async function restart(): Promise<void> {
    await server.kill();
    server = await TestServer.start({ claiming: true }, data);
    relay.targetPort = server.port;
    fleet.server = server;
  }

  it('nothing that was queued is lost or doubled, in any weather, across kill -9 of client and server', async () => {
    const device = await fleet.createDevice();
    const options = optionsOf(device);
    const weathers: Weather[] = ['lose', 'cut', 'trickle', 'refuse', 'lose', 'pass'];
    let n = 0;
    for (const [round, weather] of weathers.entries()) {
      await using client = new ClientProcess(command, options);
      relay.weather = weather;
      const first = n;
      for (; n < first + 25; n += 1) client.send(n % 5 === 0 ? 'message' : 'datapoint', n);
      await client.queued(25);
      if (round % 3 === 1) await restart();
      await pause(Math.random() * 800);
      await client.kill();
    }
    relay.weather = 'pass';
    await using client = new ClientProcess(command, options);
    expect(await client.flushed()).toMatchObject({ dropped: 0, refused: 0, doubtful: 0 });
    expect(await sentBy(device)).toEqual(upTo(n));
  });

  it('what was measured while the server was away keeps its time (D25)', async () => {
    const device = await fleet.createDevice();
    relay.weather = 'refuse';
    await using client = new ClientProcess(command, optionsOf(device));
    const at = new Date(Date.now() - 86_400_000).toISOString().replace('Z', '+00:00');
    client.send('datapoint', 0, { at });
    const beforeMs = Date.now();
    client.send('datapoint', 1);
    await client.queued(2);
    const afterMs = Date.now();
    // It is the passing of time that is tested.
    await pause(1_500);
    relay.weather = 'pass';
    await client.flushed();
    const [first, second] = await recordsOf(device);
    expect(first?.recorded_at).toBe(at.replace('+00:00', 'Z'));
    const recordedMs = Date.parse(second?.recorded_at ?? '');
    expect(recordedMs).toBeGreaterThanOrEqual(beforeMs);
    expect(recordedMs).toBeLessThanOrEqual(afterMs);
  });

  it('a device whose clock is years off, or is set by days, sends all the same, each once', async () => {
    const device = await fleet.createDevice();
    const clock = new FakedClock();
    const options = optionsOf(device);
    // Two days back the certificate is not valid yet, which a pinned key knows nothing of.
    const spki = new X509Certificate(server.ca).publicKey.export({ type: 'spki', format: 'der' });
    const pins = [createHash('sha256').update(spki).digest('base64')];
    for (const [round, days] of [-20 * 365, -2, 0, 2].entries()) {
      clock.set(days * 86_400);
      const trust = days === -2 ? { ca: undefined, pins } : {};
      await using client = new ClientProcess(command, { ...options, ...trust }, clock.environment);
      client.send('datapoint', round);
      expect(await client.flushed()).toMatchObject({ refused: 0 });
      await client.close();
    }
    expect(await sentBy(device)).toEqual(upTo(4));
  });

  it('what is measured offline by a clock that is hours off has its time corrected', async () => {
    const device = await fleet.createDevice();
    const clock = new FakedClock();
    const spki = new X509Certificate(server.ca).publicKey.export({ type: 'spki', format: 'der' });
    const pins = [createHash('sha256').update(spki).digest('base64')];
    for (const [round, hours] of [-2, 5 * 365 * 24].entries()) {
      clock.set(hours * 3_600);
      relay.weather = 'refuse';
      const options = optionsOf(device, { ca: undefined, pins });
      await using client = new ClientProcess(command, options, clock.environment);
      const beforeMs = Date.now();
      client.send('datapoint', round);
      await client.queued(1);
      const afterMs = Date.now();
      // It is the passing of time that is tested.
      await pause(3_000);
      relay.weather = 'pass';
      await client.flushed();
      const recordedMs = Date.parse((await recordsOf(device)).at(-1)?.recorded_at ?? '');
      // `Date` has whole seconds.
      expect(recordedMs).toBeGreaterThanOrEqual(beforeMs - 2_000);
      expect(recordedMs).toBeLessThanOrEqual(afterMs + 2_000);
    }
    expect(await sentBy(device)).toEqual([0, 1]);
  });

  it('what waits on a disk that is full is sent all the same, each once, and mail is taken', async () => {
    const device = await fleet.createDevice();
    using disk = new SmallDisk(1);
    const options = optionsOf(device, { queue: join(disk.path, 'queue') });
    {
      relay.weather = 'refuse';
      await using client = new ClientProcess(command, options);
      for (let n = 0; n < 20; n += 1) client.send('datapoint', n);
      await client.queued(20);
      disk.fill();
      await device.sendMail('order', '{"verb":"ack"}');
      client.takeMail();
      relay.weather = 'pass';
      await client.flushed();
      await until(async () => (await device.mails()).length === 0);
      await client.kill();
    }
    disk.makeRoom();
    await using client = new ClientProcess(command, options);
    client.send('datapoint', 20);
    expect(await client.flushed()).toMatchObject({ dropped: 0, refused: 0, doubtful: 0 });
    expect(await sentBy(device)).toEqual(upTo(21));
  });

  it('a device that polls sleeps once all is sent and its mail is taken: one connection a wake', async () => {
    const device = await fleet.createDevice();
    await using path = await HostileRelay.open(server.port);
    const options = optionsOf(device, { url: `https://127.0.0.1:${path.port}`, polls: true });
    await using client = new ClientProcess(command, options);
    client.takeMail();
    for (const [wake, verb] of ['ack', 'reject', 'ack'].entries()) {
      for (let mail = 0; mail < 3; mail += 1)
        await device.sendMail('order', JSON.stringify({ n: mail, verb }));
      client.send('datapoint', wake);
      await client.queued(wake + 1);
      expect(await client.slept()).toMatchObject({ queued: 0 });
      expect(await device.mails()).toEqual([]);
      expect(client.of('mail')).toHaveLength(3 * (wake + 1));
      expect(path.arrivalsMs).toHaveLength(wake + 1);
    }
    await client.close();
    // What is put off comes with a later wake.
    await using other = new ClientProcess(command, options);
    other.takeMail();
    await device.sendMail('order', '{"busy":600}');
    other.send('datapoint', 3);
    await other.queued(1);
    await other.slept();
    expect(await device.mails()).toHaveLength(1);
    expect(await sentBy(device)).toEqual(upTo(4));
  });

  it('a server that knows no sync is sent all by single routes, and is not asked again each time', async () => {
    const device = await fleet.createDevice();
    await using old = await OldServer.open(server.port, server.ca);
    const options = optionsOf(device, { url: `https://127.0.0.1:${old.port}` });
    await using client = new ClientProcess(command, options);
    client.takeMail();
    for (const verb of ['ack', 'requeue', 'reject']) await device.sendMail('order', JSON.stringify({ verb }));
    for (let n = 0; n < 20; n += 1) client.send(n % 5 === 0 ? 'message' : 'datapoint', n);
    await client.queued(20);
    expect(await client.flushed()).toMatchObject({ dropped: 0, refused: 0, doubtful: 0 });
    await until(async () => (await device.mails()).length === 0);
    expect(await sentBy(device)).toEqual(upTo(20));
    expect(client.of('mail')).toHaveLength(4);
    expect(old.askedForSync).toBe(1);
  });

  it('what is too large for a sync goes by its own route, in its order', async () => {
    const device = await fleet.createDevice();
    relay.weather = 'refuse';
    await using client = new ClientProcess(command, optionsOf(device));
    for (let n = 0; n < 5; n += 1)
      client.send('datapoint', n, n === 2 ? { payload: { n, text: 'x'.repeat(65_000) } } : {});
    await client.queued(5);
    relay.weather = 'pass';
    expect(await client.flushed()).toMatchObject({ refused: 0 });
    expect(await sentBy(device)).toEqual(upTo(5));
  });

  it('a full queue drops the oldest datapoints first and messages last, and counts them', async () => {
    const device = await fleet.createDevice();
    relay.weather = 'refuse';
    await using client = new ClientProcess(command, optionsOf(device, { queue_entries_max: 10 }));
    for (let n = 0; n < 6; n += 1) client.send('message', n);
    for (let n = 6; n < 20; n += 1) client.send('datapoint', n);
    await client.queued(20);
    relay.weather = 'pass';
    expect(await client.flushed()).toMatchObject({ dropped: 10 });
    expect(await sentBy(device)).toEqual([0, 1, 2, 3, 4, 5, 16, 17, 18, 19]);
  });

  it('what the server refuses for good is reported and holds up nothing', async () => {
    const device = await fleet.createDevice();
    await using client = new ClientProcess(command, optionsOf(device));
    client.send('datapoint', 0, { name: 'nosuch' });
    client.send('datapoint', 1);
    expect(await client.flushed()).toMatchObject({ refused: 1 });
    expect(client.of('status').map(({ reason }) => reason)).toContainEqual(
      expect.stringContaining('no schema of that name'),
    );
    expect(await sentBy(device)).toEqual([1]);
  });

  it('while a device is disabled nothing is thrown away', async () => {
    const device = await fleet.createDevice();
    await server.admin('PATCH', device.adminPath, { enabled: false });
    await using client = new ClientProcess(command, optionsOf(device));
    client.send('datapoint', 0);
    await until(() => client.of('status').some(({ reason }) => reason?.includes('disabled')));
    await server.admin('PATCH', device.adminPath, { enabled: true });
    expect(await client.flushed()).toMatchObject({ refused: 0, dropped: 0 });
    expect(await sentBy(device)).toEqual([0]);
  });

  it('a device that sends more than it may goes slower, and loses nothing (429)', async () => {
    const slow = await createFleet(server, { device_requests_per_second_max: 10 });
    const device = await slow.createDevice();
    await using client = new ClientProcess(command, optionsOf(device));
    for (let n = 0; n < 40; n += 1) client.send('datapoint', n);
    await client.queued(40);
    expect(await client.flushed()).toMatchObject({ refused: 0 });
    expect(await sentBy(device)).toEqual(upTo(40));
  });

  it('mail is handled in order, once, and settled as the handler says, in any weather', async () => {
    const device = await fleet.createDevice();
    const ends = ['ack', 'reject', 'requeue', 'raise'] as const;
    const expected = { ack: 'acked', reject: 'rejected', requeue: 'acked', raise: 'rejected' } as const;
    await using client = new ClientProcess(command, optionsOf(device));
    client.takeMail();
    const mails = new Map<string, string>();
    for (const weather of ['pass', 'lose', 'cut', 'trickle', 'refuse', 'pass'] as const) {
      relay.weather = weather;
      for (const verb of ends) {
        const { mailId } = await device.sendMail('order', JSON.stringify({ verb }));
        mails.set(mailId, expected[verb]);
      }
      // Each weather for a while.
      await pause(500);
    }
    await until(async () => (await device.mails()).length === 0);
    const receipts = (await recordsOf(device))
      .filter(({ kind }) => kind === 'receipt')
      .map(({ payload }) => payload as unknown as FoundReceipt);
    for (const [mailId, end] of mails) {
      const events = receipts.filter(({ mail_id }) => mail_id === mailId).map(({ event }) => event);
      expect(events.filter((event) => event === 'acked' || event === 'rejected')).toEqual([end]);
    }
    const handled = client.of('mail').map(({ id }) => id);
    const times = [...mails.keys()].map((id) => handled.filter((one) => one === id).length);
    expect(times).toEqual([...mails].map((_, index) => (ends[index % ends.length] === 'requeue' ? 2 : 1)));
  });

  it('two mails that are both put off for 8 s come ever more slowly, and outlive bounded requeues', async () => {
    const bounded = await createFleet(server, { mail_requeues_max: 20 });
    const device = await bounded.createDevice();
    for (const n of [0, 1]) await device.sendMail('order', JSON.stringify({ n, busy: 8 }));
    await using client = new ClientProcess(command, optionsOf(device, { retry_seconds_max: 2 }));
    client.takeMail();
    await until(async () => (await device.mails()).length === 0);
    const receipts = (await recordsOf(device)).map(({ payload }) => payload as unknown as FoundReceipt);
    expect(
      receipts.filter(({ event }) => /^(acked|over_requeued)$/.test(event)).map(({ event }) => event),
    ).toEqual(['acked', 'acked']);
    // It polls for 8 s in pauses of one second on average; a machine that is busy makes fewer.
    expect(client.of('mail').length).toBeLessThanOrEqual(30);
  });

  it('mail that was handled when the client was killed is settled, and not handled again', async () => {
    const device = await fleet.createDevice();
    const options = optionsOf(device);
    const { mailId } = await device.sendMail('order', '{"verb":"reject"}');
    relay.weather = 'pass';
    {
      await using client = new ClientProcess(command, options);
      client.takeMail();
      await until(() => client.of('mail').length > 0);
      relay.weather = 'refuse';
      await client.kill();
    }
    relay.weather = 'pass';
    await using client = new ClientProcess(command, options);
    client.takeMail();
    await until(async () => (await device.mails()).length === 0);
    const handled = client.of('mail').length;
    expect(handled).toBeLessThanOrEqual(1);
    const { body } = await server.admin<{ status: string }>('GET', `${device.adminPath}/mail/${mailId}`);
    expect(JSON.stringify(body)).toContain('rejected');
  });

  it('a device without a secret claims one of its own choice, and keeps it', async () => {
    const { body } = await server.admin<{ claim_token: string }>(
      'POST',
      `/fleets/${fleet.fleetId}/claim-tokens`,
      { name: 'hall', devices_max: 1 },
    );
    const options = {
      ...optionsOf({ fleetId: fleet.fleetId, deviceId: 'CLAIMED001', secret: '' } as TestDevice),
      secret: null,
      claim: body.claim_token,
    };
    relay.weather = 'lose';
    for (const n of [0, 1]) {
      await using client = new ClientProcess(command, options);
      client.send('datapoint', n);
      await client.queued(1);
      // Long enough for a request whose answer is lost.
      await pause(700);
      relay.weather = 'pass';
      await client.flushed();
      await client.close();
    }
    expect(await sentBy({ fleetId: fleet.fleetId, deviceId: 'CLAIMED001' } as TestDevice)).toEqual([0, 1]);
  });

  it('a connection resumes the TLS session of the one before', async () => {
    await using path = await HostileRelay.open(ofOneWorker.port);
    const device = await (await createFleet(ofOneWorker)).createDevice();
    const more = { url: `https://127.0.0.1:${path.port}`, ca: ofOneWorker.report.cert_file };
    await using client = new ClientProcess(command, optionsOf(device, more));
    for (let n = 0; n < 4; n += 1) {
      client.send('datapoint', n);
      await client.flushed();
      path.cut();
    }
    expect(path.resumed).toEqual([false, true, true, true]);
    const before = path.resumed.length;
    client.takeMail();
    await device.sendMail('order', '{"verb":"ack"}');
    await until(async () => (await device.mails()).length === 0);
    expect(path.resumed.length).toBeGreaterThan(before);
    expect(path.resumed.slice(before)).not.toContain(false);
  });

  it('a server that cannot prove its name gets no credentials', async () => {
    const device = await fleet.createDevice();
    for (const trust of [{ ca: undefined }, { ca: undefined, pins: [Buffer.alloc(32).toString('base64')] }]) {
      await using client = new ClientProcess(command, optionsOf(device, trust));
      client.send('datapoint', 0);
      await until(() => client.of('status').some(({ reason }) => /certificate|pinned/i.test(reason ?? '')));
    }
    expect(await sentBy(device)).toEqual([]);
  });
});
