/** Two nodes on one store: changes, limits and streams of either, seen by the other. */

import { fetch } from 'undici';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { anyObject, createFleet, TestDevice } from '../harness/devices/device.ts';
import { closeStreams, EventStream } from '../harness/devices/event-stream.ts';
import { Broadcasts, mailboxSizes } from '../harness/features/broadcast.ts';
import { Receiver } from '../harness/features/receiver.ts';
import {
  actionQueueMax,
  at,
  type Nodes,
  numbers,
  numbersFrom0,
  relay,
  streamsPerDeviceMax,
  useNodes,
} from '../harness/server/nodes.ts';
import type { TestServer } from '../harness/server/server.ts';
import { as, sessionBearer } from '../harness/server/token.ts';

/** Time in which a node's change holds on the other: a second; the machine may stand still for some more. */
const soon = { timeout: 15_000, interval: 200 };
const patience = { timeout: 60_000, interval: 250 };
const startNodes = useNodes(afterAll);

let nodes: Nodes;
beforeAll(async () => {
  nodes = await startNodes();
});
afterEach(closeStreams);

it('a fleet, a schema and a device that one node makes or changes are there on the other', async () => {
  const { first, second } = nodes;
  const fleet = await createFleet(first);
  // At once: the second looks for a fleet that it does not know.
  expect((await second.admin('GET', `/fleets/${fleet.fleetId}`)).status).toBe(200);
  expect((await second.admin('GET', '/fleets/NEVER000')).status).toBe(404);
  const device = await at(second, fleet).createDevice({ name: 'door' });
  const onFirst = device.on(first);
  expect((await onFirst.heartbeat()).status).toBe(201);

  await at(second, fleet).putSchema('message', 'opened', {
    type: 'object',
    properties: { door: { type: 'integer' } },
  });
  const send = (body: object) => onFirst.request('POST', '/v1/msg/opened', body);
  await expect.poll(async () => (await send({ door: 1 })).status, soon).toBe(201);
  expect((await send({ door: 'one' })).status).toBe(400);
  await second.admin('DELETE', `/fleets/${fleet.fleetId}/schemas/message/opened`);
  await expect.poll(async () => (await send({ door: 1 })).status, soon).toBe(404);

  await second.admin('PATCH', device.adminPath, { enabled: false });
  await expect.poll(async () => (await onFirst.heartbeat()).json.detail, soon).toBe('device_disabled');
  await first.admin('PATCH', device.adminPath, { enabled: true });
  await expect.poll(async () => (await device.on(second).heartbeat()).status, soon).toBe(201);
  await second.admin('DELETE', device.adminPath);
  await expect.poll(async () => (await onFirst.heartbeat()).status, soon).toBe(401);
});

it('D31: a device that waits at one node gets what is sent at the other, which its reply reaches', async () => {
  const { first, second } = nodes;
  const fleet = await createFleet(first);
  const device = await fleet.createDevice();
  const onSecond = device.on(second);
  await expect.poll(async () => (await onSecond.heartbeat()).status, soon).toBe(201);
  const waiting = onSecond.next('?wait=300');
  const isConnected = async () => (await first.admin('GET', device.adminPath)).body.state === 'connected';
  await expect.poll(isConnected, soon).toBe(true);
  const calling = device.sendMail('valve', '{"open":true}', '?wait=300');
  const { status, text, headers } = await waiting;
  expect([status, text]).toEqual([200, '{"open":true}']);
  const mailId = headers.get('x-mail-id') ?? '';
  const settled = await onSecond.request('PUT', `/v1/mailbox/ack/${mailId}`, { done: 'slowly' });
  expect(settled.status).toBe(200);
  const called = await calling;
  expect([called.status, called.mailId]).toEqual([200, mailId]);
  expect(called.body).toMatchObject({ state: 'acked', reply: { done: 'slowly' } });

  // A newer request at the other node ends the older one.
  await expect.poll(isConnected, soon).toBe(false);
  const older = onSecond.next('?wait=300');
  await expect.poll(isConnected, soon).toBe(true);
  const newer = device.next('?wait=300');
  expect((await older).status).toBe(204);
  await at(second, fleet).server.admin('POST', `${device.adminPath}/mail/valve`, '{"open":false}');
  expect((await newer).text).toBe('{"open":false}');
});

it('a token that one node makes opens the other, until it is revoked on either', async () => {
  const { first, second } = nodes;
  const made = await second.admin<{ token: string; token_id: string }>('POST', '/tokens', {
    name: 'both',
    scopes: ['read'],
  });
  expect(made.status).toBe(201);
  const ask = async (server: TestServer): Promise<number> => {
    const headers = { authorization: `Bearer ${made.body.token}` };
    return (await fetch(`${server.report.admin_url}/admin/v1/fleets`, { headers })).status;
  };
  expect(await ask(second)).toBe(200);
  await expect.poll(() => ask(first), soon).toBe(200);
  expect((await first.admin('DELETE', `/tokens/${made.body.token_id}`)).status).toBe(204);
  expect(await ask(first)).toBe(401);
  await expect.poll(() => ask(second), soon).toBe(401);
});

it('a session of the console that one node makes opens the other, and ends with its parent', async () => {
  const { first, second } = nodes;
  const parent = await first.admin<{ token: string; token_id: string }>('POST', '/tokens', {
    name: 'operator',
    scopes: ['read'],
  });
  const code = await as(first, parent.body.token, 'POST', '/console-codes', {});
  const session = await as(first, '', 'POST', '/console-sessions', { code: code.body.code });
  const token = sessionBearer(session);
  const self = () => as(second, token, 'GET', '/self');
  await expect
    .poll(async () => (await self()).body, soon)
    .toMatchObject({ kind: 'session', name: 'operator' });
  await second.admin('DELETE', `/tokens/${parent.body.token_id}`);
  expect((await self()).status).toBe(401);
  await expect.poll(async () => (await as(first, token, 'GET', '/self')).status, soon).toBe(401);
});

it('claims at both nodes at once never exceed what the token allows, and a revoked one is over on both', async () => {
  const { first, second } = nodes;
  const fleet = await createFleet(first);
  const path = `/fleets/${fleet.fleetId}/claim-tokens`;
  const made = await second.admin<{ claim_token: string; claim_token_id: string }>('POST', path, {
    devices_max: 20,
    tags: ['claimed'],
  });
  const claim = async (server: TestServer): Promise<{ status: number; json: Record<string, string> }> => {
    const answer = await fetch(`${server.url}/v1/claim`, {
      method: 'POST',
      dispatcher: server.agent,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ fleet_id: fleet.fleetId, claim_token: made.body.claim_token }),
    });
    return { status: answer.status, json: (await answer.json()) as Record<string, string> };
  };
  await expect.poll(async () => (await claim(first)).status, soon).toBe(201);
  const answers = await Promise.all(
    numbersFrom0(40).map(async (n) => {
      const server = n % 2 === 0 ? first : second;
      return { server, ...(await claim(server)) };
    }),
  );
  const claimed = answers.filter(({ status }) => status === 201);
  expect(claimed).toHaveLength(19);
  for (const { status, json } of answers.filter((answer) => answer.status !== 201)) {
    expect([status, json.error]).toEqual([403, 'claim_limit_reached']);
  }
  for (const { server, json } of claimed) {
    const other = server === first ? second : first;
    const device = new TestDevice(other, fleet.fleetId, json.device_id ?? '', json.device_secret ?? '');
    expect((await device.heartbeat()).status).toBe(201);
  }
  for (const server of [first, second]) {
    expect((await mailboxSizes(at(server, fleet))).size).toBe(20);
  }
  expect((await first.admin('DELETE', `${path}/${made.body.claim_token_id}`)).status).toBe(204);
  for (const server of [first, second]) {
    await expect.poll(async () => (await claim(server)).json.error, soon).toBe('unauthorized');
  }
});

it('streams on one node are told of mail that the other queued, and the oldest makes room for one on the other', async () => {
  const { first, second } = nodes;
  const device = await (await createFleet(first)).createDevice();
  await expect.poll(async () => (await device.on(second).heartbeat()).status, soon).toBe(201);
  const streams: EventStream[] = [];
  while (streams.length < streamsPerDeviceMax) streams.push(await EventStream.open(device.on(second)));
  await device.sendMail('note', '{"n":1}');
  for (const stream of streams) {
    const [event] = await stream.has('new_mail', 1);
    expect(event?.data).toMatchObject({ name: 'note', mailbox_size: 1 });
  }
  const other = await EventStream.open(device.on(first));
  await expect.poll(() => streams.map(({ isOver }) => isOver), soon).toEqual([true, false, false]);
  await device.on(second).sendMail('note', '{"n":2}');
  await other.has('new_mail', 1);
  expect(await numbers(device.on(second))).toEqual([1, 2]);
  await second.admin('PATCH', device.adminPath, { enabled: false });
  await expect.poll(() => other.isOver, soon).toBe(true);
});

it('what the first node works at is put and steered through the second', async () => {
  const { first, second } = nodes;
  const fleet = at(second, await createFleet(first));
  await fleet.putSchema('message', 'opened', anyObject);
  const [door, lock] = [await fleet.createDevice(), await fleet.createDevice()];
  const path = `/fleets/${fleet.fleetId}`;
  await using receiver = await Receiver.start();
  // Not the receipts of the mails.
  const messages = { kinds: ['message'] };
  const hook = { type: 'webhook', url: receiver.url, tls: { ca: receiver.ca }, filter: messages };
  const put = await second.admin<{ secret: string }>('PUT', `${path}/forwarders/hook`, hook);
  expect(put).toMatchObject({ status: 201 });
  receiver.secret = put.body.secret;
  expect((await second.admin('PUT', `${path}/consumers/hall`, messages)).status).toBe(201);
  expect((await fleet.putAction('relay', relay)).status).toBe(201);
  const open = async (server: TestServer, n: number): Promise<void> => {
    const body = { n, to: lock.deviceId };
    const send = () => door.on(server).request('POST', '/v1/msg/opened', body);
    // Refused, with nothing stored, until the node has heard of the schema.
    await expect.poll(async () => (await send()).status, soon).toBe(201);
  };
  await open(first, 0);
  await open(second, 1);
  await expect.poll(() => numbers(lock), patience).toEqual([0, 1]);
  await vi.waitFor(() => expect(receiver.taken.map(({ payload }) => payload.n)).toEqual([0, 1]), patience);
  expect(receiver.badSignatures).toEqual([]);

  type Batch = { batch_id: string; records: { payload: { n: number } }[] };
  const batch = await second.admin<Batch>('POST', `${path}/consumers/hall/fetch`, {});
  expect(batch.body.records.map(({ payload }) => payload.n)).toEqual([0, 1]);
  const { batch_id } = batch.body;
  expect(await second.admin('POST', `${path}/consumers/hall/acknowledge`, { batch_id })).toMatchObject({
    status: 200,
  });
  // One that waits is answered when something comes.
  const waiting = second.admin<Batch>('POST', `${path}/consumers/hall/fetch`, { wait_seconds: 20 });
  await second.admin('PATCH', `${path}/actions/relay`, { enabled: false });
  await open(second, 2);
  expect((await waiting).body.records.map(({ payload }) => payload.n)).toEqual([2]);
  for (const server of [first, second]) {
    expect((await server.admin('GET', `${path}/actions/relay`)).body).toMatchObject({ enabled: false });
  }
  await second.admin('PATCH', `${path}/actions/relay`, { enabled: true });
  await open(second, 3);
  await expect.poll(() => numbers(lock), patience).toEqual([0, 1, 3]);
  expect((await second.admin('GET', `${path}/actions/nobody`)).body).toMatchObject({
    error: 'action_not_found',
  });

  const broadcasts = new Broadcasts(fleet);
  const { broadcast_id } = await broadcasts.put({ name: 'note', payload: { n: 4 }, to: { all: true } });
  await broadcasts.done(broadcast_id);
  expect(await new Broadcasts(at(first, fleet)).get(broadcast_id)).toMatchObject({
    queued: 2,
    state: 'done',
  });
  expect(await numbers(lock)).toEqual([0, 1, 3, 4]);
});

it('what two nodes change of one forwarder at once is all there, and the limit of a fleet holds on both', async () => {
  const { first, second } = nodes;
  const { fleetId } = await createFleet(first);
  const path = `/fleets/${fleetId}/forwarders`;
  const hook = { type: 'webhook', url: 'https://localhost:9/' };
  expect((await second.admin('PUT', `${path}/hook`, hook)).status).toBe(201);
  for (const n of numbersFrom0(5)) {
    const enabled = n % 2 === 0;
    const answers = await Promise.all([
      first.admin('PATCH', `${path}/hook`, { enabled }),
      second.admin('PUT', `${path}/hook`, { ...hook, batch_records_max: n + 1 }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    for (const server of [first, second]) {
      expect((await server.admin('GET', `${path}/hook`)).body).toMatchObject({
        enabled,
        batch_records_max: n + 1,
      });
    }
  }
  // Nine more: `forwardersPerFleetMax` is 10.
  const puts = numbersFrom0(12).map((n) =>
    (n % 2 === 0 ? first : second).admin('PUT', `${path}/hook-${n}`, { ...hook, enabled: false }),
  );
  const refused = (await Promise.all(puts)).filter(({ status }) => status !== 201);
  expect(refused.map(({ body }) => body)).toMatchObject(
    numbersFrom0(3).map(() => ({ error: 'limit_reached' })),
  );
});

it('how far an action is behind is told by either node', async () => {
  const { first, second } = nodes;
  const fleet = at(second, await createFleet(first));
  await fleet.putSchema('message', 'opened', anyObject);
  const [door, lock] = [await fleet.createDevice(), await fleet.createDevice()];
  expect((await fleet.putAction('relay', relay, { runs_per_second_max: 1 })).status).toBe(201);
  const count = actionQueueMax + 4;
  for (const n of numbersFrom0(count)) {
    expect((await door.request('POST', '/v1/msg/opened', { n, to: lock.deviceId })).status).toBe(201);
  }
  const path = `/fleets/${fleet.fleetId}/actions/relay`;
  const behind = async (server: TestServer) =>
    (await server.admin<{ behind: number }>('GET', path)).body.behind;
  for (const server of [first, second]) expect(await behind(server)).toBeGreaterThan(0);
  expect((await second.admin('PATCH', path, { runs_per_second_max: null })).status).toBe(200);
  await expect.poll(() => numbers(lock), patience).toEqual(numbersFrom0(count));
  for (const server of [first, second]) await expect.poll(() => behind(server), soon).toBe(0);
});

it('neither node had anything to complain of', () => {
  expect([nodes.first.stderr, nodes.second.stderr]).toEqual(['', '']);
});
