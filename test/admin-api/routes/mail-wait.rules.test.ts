/** Decision D31: who sends a mail waits for its settlement. */

import { uuidv7 } from 'uuidv7';
import { beforeAll, describe, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { TestServer } from '../../harness/server/server.ts';

let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
});
const patience = { timeout: 15_000, interval: 20 };

interface Answer {
  status: number;
  headers: Headers;
  body: Record<string, unknown>;
}

/** Sends a mail and waits for its settlement, whatever other requests of the test there are. */
async function call(
  device: TestDevice,
  query: string,
  { headers = {}, signal }: { headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Answer> {
  const { report, token } = device.server;
  const response = await fetch(`${report.admin_url}/admin/v1${device.adminPath}/mail/valve?${query}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', ...headers },
    body: '{"n":1}',
    ...(signal && { signal }),
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Answer['body'],
  };
}

/** The mail that a device finds, which waits for it. */
async function fetched(device: TestDevice): Promise<string> {
  const { status, headers } = await device.next('?wait=60');
  expect(status).toBe(200);
  return headers.get('x-mail-id') ?? '';
}

const settle = (device: TestDevice, verb: string, mailId: string, reply: object) =>
  device.request('PUT', `/v1/mailbox/${verb}/${mailId}`, reply);

describe('D31: POST …/mail/{name}?wait', () => {
  it.each([
    ['ack', 'acked'],
    ['reject', 'rejected'],
  ])('D31: it is answered with receipt and reply as soon as its device says %s', async (verb, state) => {
    const device = await fleet.createDevice();
    const calling = call(device, 'wait=60');
    const mailId = await fetched(device);
    await settle(device, verb, mailId, { litres: 2 });
    const { status, body } = await calling;
    expect(status).toBe(200);
    expect(body).toMatchObject({ mail_id: mailId, state, reply: { litres: 2 } });
  });

  it('D31: a requeue is no settlement; a mail that ends otherwise is answered too', async () => {
    const device = await fleet.createDevice();
    const calling = call(device, 'wait=60');
    const mailId = await fetched(device);
    expect((await device.settle('requeue', mailId)).status).toBe(200);
    await server.admin('DELETE', `${device.adminPath}/mail/${mailId}`);
    const { status, body } = await calling;
    expect([status, body.state, body.reply, body.requeue_count]).toEqual([200, 'withdrawn', null, 1]);
  });

  it('D31: after its time it is answered as without waiting', async () => {
    const device = await fleet.createDevice();
    const startMs = performance.now();
    const { status, body } = await call(device, 'wait=1');
    expect([status, body.state, body.mailbox_size]).toEqual([201, 'queued', 1]);
    expect(performance.now() - startMs).toBeGreaterThan(900);
  });

  it('D18, D31: the same request again waits for the same mail, however long', async () => {
    const device = await fleet.createDevice();
    const headers = { 'Idempotency-Key': uuidv7() };
    const first = await call(device, 'wait=1', { headers });
    expect(first.status).toBe(201);
    const again = call(device, 'wait=60', { headers });
    await settle(device, 'ack', await fetched(device), { once: true });
    const { status, headers: answered, body } = await again;
    expect([status, answered.get('idempotent-replayed')]).toEqual([200, 'true']);
    expect(body).toMatchObject({ mail_id: first.body.mail_id, reply: { once: true } });
    const settled = await call(device, 'wait=60', { headers });
    // A fetch that another worker has counted may be added to the receipt some seconds later (D13).
    const { fetch_count: _count, first_fetched_at: _first, ...rest } = body;
    expect(settled.body).toMatchObject(rest);
    expect((await device.next()).status).toBe(204);
  });

  it.each(['0', '301', 'x', '1.5'])('D31: wait=%s is 400, and sends nothing', async (seconds) => {
    const device = await fleet.createDevice();
    expect((await call(device, `wait=${seconds}`)).status).toBe(400);
    expect((await device.next()).status).toBe(204);
  });

  it('D31: nobody else waits for a place meanwhile, and what is refused sends nothing', async () => {
    await using own = await TestServer.start({ adminRequestsMax: 8, adminWaitsMax: 64 });
    const ownFleet = await createFleet(own);
    const devices = await Promise.all(Array.from({ length: 16 }, () => ownFleet.createDevice()));
    const abort = new AbortController();
    // One token alone has a quarter.
    const waiting = devices.map((device) =>
      call(device, 'wait=300', { signal: abort.signal }).catch(() => undefined),
    );
    for (const device of devices) await expect.poll(() => device.mails(), patience).toHaveLength(1);
    const late = await ownFleet.createDevice();
    const refused = await call(late, 'wait=300');
    expect([refused.status, refused.body.error]).toEqual([503, 'unavailable']);
    expect(refused.body.msg).toContain('adminWaitsMax');
    expect(await late.mails()).toEqual([]);
    expect((await late.sendMail()).status).toBe(201);
    // Who goes gives its place back.
    abort.abort();
    await Promise.all(waiting);
    await expect.poll(async () => (await call(late, 'wait=1')).status, patience).toBe(201);
  });

  it('D31: a server that stops answers who waits, as without waiting', async () => {
    await using own = await TestServer.start();
    const device = await (await createFleet(own)).createDevice();
    const calling = call(device, 'wait=300');
    await expect.poll(() => device.mails(), patience).toHaveLength(1);
    const stopped = own.stop();
    expect((await calling).status).toBe(201);
    await stopped;
  });
});
