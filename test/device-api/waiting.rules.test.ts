/** Decision D31: requests that wait for mail. */

import { Agent } from 'undici';
import { beforeAll, describe, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { RawConnection, requestText } from '../harness/devices/raw.ts';
import { expectError } from '../harness/devices/routes.ts';
import { TestServer } from '../harness/server/server.ts';

let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
});
const patience = { timeout: 15_000, interval: 20 };

/** Streams and waiting requests of a server, which are counted together. */
async function openCount(of = server): Promise<number> {
  const text = await (await fetch(`${of.report.admin_url}/metrics`)).text();
  const counts = [...text.matchAll(/^fleetpost_streams_open\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Begins to wait on a connection of its own; waits until the server has it. */
async function wait(device: TestDevice, query = 'wait=300', method = 'GET'): Promise<RawConnection> {
  const before = await openCount(device.server);
  const connection = await RawConnection.open(device.server);
  connection.write(requestText(method, `/v1/mailbox/next?${query}`, { ...device.credentials }));
  await expect.poll(() => openCount(device.server), patience).toBe(before + 1);
  return connection;
}

describe('D31: GET /v1/mailbox/next?wait', () => {
  it('D31: with mail it is answered at once', async () => {
    const device = await fleet.createDevice();
    const { mailId } = await device.sendMail('note', '{"n":1}');
    const answer = await device.next('?wait=300');
    expect([answer.status, answer.text, answer.headers.get('x-mail-id')]).toEqual([200, '{"n":1}', mailId]);
    const inEnvelope = await device.next('?shape=envelope&wait=300');
    expect(inEnvelope.json).toMatchObject({ id: mailId, payload: { n: 1 } });
  });

  it('D31: it is answered with the mail that comes, counted as fetched, and its connection goes on', async () => {
    const device = await fleet.createDevice();
    const connection = await wait(device);
    const { mailId } = await device.sendMail('note', '{"n":2}');
    const answer = await connection.answer();
    expect([answer.status, answer.body]).toEqual([200, '{"n":2}']);
    expect(await openCount()).toBe(0);
    connection.write(requestText('PUT', `/v1/mailbox/ack/${mailId}`, { ...device.credentials }));
    expect((await connection.answer()).status).toBe(200);
    const { body } = await server.admin('GET', `${device.adminPath}/mail/${mailId}`);
    expect(body).toMatchObject({ state: 'acked', fetch_count: 1 });
    connection.destroy();
  });

  it('D31: HEAD waits too, and answers without the body', async () => {
    const device = await fleet.createDevice();
    const connection = await wait(device, 'wait=300', 'HEAD');
    const { mailId } = await device.sendMail('note', '{"n":3}');
    const answer = await connection.answer(true);
    expect([answer.status, answer.body]).toEqual([200, '']);
    expect((await device.next()).headers.get('x-mail-id')).toBe(mailId);
    connection.destroy();
  });

  it('D31: without mail it is 204 when its time is over', async () => {
    const device = await fleet.createDevice();
    const startMs = performance.now();
    const { status, headers } = await device.next('?wait=1');
    expect([status, headers.get('x-mailbox-size'), headers.get('x-mail-id')]).toEqual([204, '0', '']);
    expect(performance.now() - startMs).toBeGreaterThan(900);
    expect(await openCount()).toBe(0);
  });

  it.each(['0', '301', '-1', '1.5', '1e1', '', 'x'])('D31: wait=%s is 400', async (seconds) => {
    const device = await fleet.createDevice();
    expectError(await device.next(`?wait=${seconds}`), 400, 'bad_request');
  });

  it('D31: of two waiting requests of a device the newer ends the older with 204', async () => {
    const device = await fleet.createDevice();
    const older = await wait(device);
    const newer = await RawConnection.open(server);
    newer.write(requestText('GET', '/v1/mailbox/next?wait=300', { ...device.credentials }));
    expect((await older.answer()).status).toBe(204);
    await device.sendMail('note', '{"n":4}');
    expect((await newer.answer()).body).toBe('{"n":4}');
    older.destroy();
    newer.destroy();
  });

  it('D31: it is apart from the streams of its device', async () => {
    const device = await fleet.createDevice();
    const waiting = await wait(device);
    const streams: RawConnection[] = [];
    for (let stream = 0; stream < 5; stream += 1) {
      const connection = await RawConnection.open(server);
      connection.write(
        requestText('GET', '/v1/events', { ...device.credentials, Accept: 'text/event-stream' }),
      );
      await expect.poll(() => connection.text, patience).toContain('event: connected\n');
      streams.push(connection);
    }
    expect(waiting.text).toBe('');
    await device.sendMail('note', '{"n":5}');
    expect((await waiting.answer()).body).toBe('{"n":5}');
    await expect
      .poll(() => streams.filter(({ text }) => text.includes('event: new_mail')).length, patience)
      .toBe(4);
    for (const connection of streams) connection.destroy();
    await expect.poll(() => openCount(), patience).toBe(0);
  });

  it('D31: a client that goes leaves nothing, and its device is connected no longer', async () => {
    const device = await fleet.createDevice();
    const connection = await wait(device);
    const isConnected = async (): Promise<boolean> =>
      (await server.admin('GET', device.adminPath)).body.state === 'connected';
    await expect.poll(isConnected, patience).toBe(true);
    connection.destroy();
    await expect.poll(() => openCount(), patience).toBe(0);
    await expect.poll(isConnected, patience).toBe(false);
    const { mailId } = await device.sendMail();
    expect((await device.next()).headers.get('x-mail-id')).toBe(mailId);
    const { body } = await server.admin('GET', `${device.adminPath}/mail/${mailId}`);
    expect(body.state).toBe('queued');
  });

  it('D21, D31: a device that is disabled waits no longer', async () => {
    const device = await fleet.createDevice();
    const waiting = await wait(device);
    await server.admin('PATCH', device.adminPath, { enabled: false });
    expect((await waiting.answer()).status).toBe(204);
    expect((await device.next('?wait=1')).status).toBe(401);
    waiting.destroy();
  });
});

describe('D31: bounds of waiting requests', () => {
  it('D31: one more than streamsPerWorkerMax is 503; a server that stops answers those that wait', async () => {
    await using own = await TestServer.start({ shards: 1, streamsPerWorkerMax: 2 });
    const ownFleet = await createFleet(own);
    const devices = await Promise.all([1, 2, 3].map(() => ownFleet.createDevice()));
    const waiting: RawConnection[] = [];
    for (const device of devices.slice(0, 2)) waiting.push(await wait(device));
    const agent = new Agent({ connect: { ca: own.ca } });
    const refused = await devices[2]?.request('GET', '/v1/mailbox/next?wait=5', undefined, {}, agent);
    expect(refused?.status).toBe(503);
    expect(refused?.json.msg).toContain('streamsPerWorkerMax');
    await agent.close();
    const stopped = own.stop();
    for (const connection of waiting) expect((await connection.answer()).status).toBe(204);
    await stopped;
  });
});
