import { afterEach, expect, it, vi } from 'vitest';
import { anyObject, createFleet } from '../harness/devices/device.ts';
import { Broadcasts, importDevices, mailboxSizes } from '../harness/features/broadcast.ts';
import { Receiver } from '../harness/features/receiver.ts';
import { at, holderOfJobs, numbers, numbersFrom0, relay, useNodes } from '../harness/server/nodes.ts';
import { queryDatabase } from '../harness/storage/log.ts';

/** A node that has died is followed some 10 s later. */
const patience = { timeout: 60_000, interval: 250 };
const startNodes = useNodes(afterEach);

it('devices of two databases are served by either node, and what is done for all reaches them all', async () => {
  const { first, second, urls } = await startNodes(2);
  const fleet = await createFleet(first);
  await importDevices(fleet, { count: 60 });
  await fleet.putSchema('message', 'opened', anyObject);
  // Counts come from both databases, also where a node has fewer workers.
  const top = async () =>
    (await second.admin<{ shards: { devices: number }[] }>('GET', '/top')).body.shards.map(
      ({ devices }) => devices,
    );
  await expect.poll(async () => (await top()).reduce((sum, devices) => sum + devices, 0), patience).toBe(60);
  for (const url of urls) {
    const [row] = await queryDatabase<{ count: number }>(url, 'SELECT count(*)::int FROM device');
    expect(row?.count).toBeGreaterThan(10);
  }
  const [door, lock] = [await fleet.createDevice(), await fleet.createDevice()];
  await fleet.putAction('relay', relay);
  await expect.poll(async () => (await mailboxSizes(at(second, fleet))).size, patience).toBe(62);
  for (const n of numbersFrom0(6)) {
    const server = n % 2 === 0 ? first : second;
    const { status } = await door.on(server).request('POST', '/v1/msg/opened', { n, to: lock.deviceId });
    expect(status).toBe(201);
  }
  await expect.poll(() => numbers(lock.on(second)), patience).toEqual(numbersFrom0(6));
  const broadcasts = new Broadcasts(at(second, fleet));
  const { broadcast_id } = await broadcasts.put({ name: 'note', to: { all: true } });
  expect(await broadcasts.done(broadcast_id)).toMatchObject({ queued: 62, refused: 0 });
});

it('killed in the midst of an action and a broadcast, the node with the jobs is followed by the other: each mail is there once', async () => {
  const { first, second } = await startNodes();
  const crowd = at(second, await createFleet(first));
  await importDevices(crowd, { count: 400 });
  const fleet = at(second, await createFleet(second));
  await fleet.putSchema('message', 'opened', anyObject);
  await fleet.putAction('relay', relay);
  const pairs = await Promise.all(
    numbersFrom0(4).map(async () => ({ door: await fleet.createDevice(), lock: await fleet.createDevice() })),
  );
  let isOver = false;
  const sending = Promise.all(
    pairs.map(async ({ door, lock }) => {
      for (let n = 0; ; n += 1) {
        if (isOver) return n;
        const { status } = await door.request('POST', '/v1/msg/opened', { n, to: lock.deviceId });
        expect(status).toBe(201);
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    }),
  );
  const arrived = async () => {
    const sizes = await mailboxSizes(fleet);
    return pairs.map(({ lock }) => sizes.get(lock.deviceId) ?? 0);
  };
  await expect.poll(async () => Math.min(...(await arrived())), patience).toBeGreaterThan(5);
  const broadcasts = new Broadcasts(crowd);
  const { broadcast_id } = await broadcasts.put({ name: 'note', to: { all: true } });
  expect((await broadcasts.sent(broadcast_id, 1)).state).toBe('running');
  await first.kill();
  await broadcasts.done(broadcast_id);
  isOver = true;
  const sent = await sending;
  await expect.poll(arrived, patience).toEqual(sent);
  for (const [index, { lock }] of pairs.entries()) {
    expect(await numbers(lock)).toEqual(numbersFrom0(sent[index] ?? 0));
  }
  expect(new Set((await mailboxSizes(crowd)).values())).toEqual(new Set([1]));
});

it('a node that stops gives the jobs away at once, and what is paused waits for the next', async () => {
  const { first, second, urls } = await startNodes();
  const fleet = at(second, await createFleet(first));
  await importDevices(fleet, { count: 300 });
  const broadcasts = new Broadcasts(fleet);
  const { broadcast_id } = await broadcasts.put({ name: 'note', to: { all: true } });
  expect((await broadcasts.change(broadcast_id, 'pause')).status).toBe(200);
  const other = at(second, await createFleet(second));
  const consumer = `/fleets/${other.fleetId}/consumers/hall`;
  expect((await second.admin('PUT', consumer, {})).status).toBe(201);
  expect((await second.admin('PATCH', consumer, { enabled: false })).body).toMatchObject({ enabled: false });
  const door = await other.createDevice();
  expect((await door.request('POST', '/v1/msg/note', { n: 1 })).status).toBe(201);
  const fetchBatch = () => second.admin<{ records: object[] }>('POST', `${consumer}/fetch`, {});
  expect((await fetchBatch()).body).toMatchObject({ batch_id: null, paused: true });
  const holder = await holderOfJobs(urls);
  expect(await first.stop()).toBe(0);
  // Nobody waits for the end of its lease.
  expect(await holderOfJobs(urls)).not.toBe(holder);
  await vi.waitFor(async () => {
    expect((await broadcasts.change(broadcast_id, 'resume')).status).toBe(200);
  }, patience);
  expect((await fetchBatch()).body).toMatchObject({ batch_id: null, paused: true });
  const waiting = second.admin<{ records: object[] }>('POST', `${consumer}/fetch`, { wait_seconds: 30 });
  expect((await second.admin('PATCH', consumer, { enabled: true })).status).toBe(200);
  expect((await waiting).body.records).toHaveLength(1);
  expect(await broadcasts.done(broadcast_id)).toMatchObject({ queued: 300, refused: 0 });
  expect(new Set((await mailboxSizes(fleet)).values())).toEqual(new Set([1]));
  expect([first.stderr, second.stderr]).toEqual(['', '']);
});

it('what is declared while no node has the jobs is so at once: the next one skips just what was stored before', async () => {
  const { first, second, urls } = await startNodes();
  const fleet = at(second, await createFleet(second));
  await fleet.putSchema('message', 'opened', anyObject);
  const [door, lock] = [await fleet.createDevice(), await fleet.createDevice()];
  await fleet.putAction('relay', relay);
  const path = `/fleets/${fleet.fleetId}`;
  await using receiver = await Receiver.start();
  const open = async (n: number): Promise<void> => {
    const { status } = await door.request('POST', '/v1/msg/opened', { n, to: lock.deviceId });
    expect(status).toBe(201);
  };
  await open(0);
  await expect.poll(() => numbers(lock), patience).toEqual([0]);

  await first.kill();
  const answers: Promise<{ status: number }>[] = [];
  let answered = 0;
  // Answered by the next leader; declared once it waits for that.
  const declare = async (method: string, of: string, body?: object): Promise<void> => {
    const answer = second.admin(method, `${path}/${of}`, body);
    void answer.then(() => {
      answered += 1;
    });
    answers.push(answer);
    const counted = async (): Promise<number> => {
      const [row] = await queryDatabase<{ calls: number }>(
        urls[0] ?? '',
        'SELECT count(*)::int AS calls FROM call',
      );
      return answered + (row?.calls ?? 0);
    };
    await expect.poll(counted, patience).toBeGreaterThanOrEqual(answers.length);
  };
  await declare('PATCH', 'actions/relay', { enabled: false });
  await open(1);
  await declare('PATCH', 'actions/relay', { enabled: true });
  const hook = {
    type: 'webhook',
    url: receiver.url,
    tls: { ca: receiver.ca },
    filter: { kinds: ['message'] },
  };
  await declare('PUT', 'forwarders/hook', hook);
  await open(2);
  await declare('PATCH', 'actions/relay', { enabled: false });
  await open(3);
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 201, 200]);
  await vi.waitFor(() => expect(receiver.taken.map(({ payload }) => payload.n)).toEqual([2, 3]), patience);
  expect((await second.admin('PATCH', `${path}/actions/relay`, { enabled: true })).status).toBe(200);
  await open(4);
  await expect.poll(async () => (await numbers(lock)).includes(4), patience).toBe(true);
  // The third was stored while it was enabled, and not run before it was disabled again.
  expect((await numbers(lock)).filter((n) => n !== 2)).toEqual([0, 4]);
  expect(second.stderr).toBe('');
});

it('killed while it deletes a fleet, the node with the jobs is followed by the other, which deletes the rest', async () => {
  const { first, second, urls } = await startNodes(2);
  const fleet = at(second, await createFleet(first, { name: 'Large' }));
  await importDevices(fleet, { count: 3_000 });
  const device = await fleet.createDevice();
  expect((await device.on(first).heartbeat()).status).toBe(201);
  const path = `/fleets/${fleet.fleetId}`;
  expect((await second.admin('DELETE', `${path}?name=Large`)).status).toBe(202);
  expect((await device.on(second).heartbeat()).json.detail).toBe('fleet_not_found');
  // The other node is told some moments later.
  await expect.poll(async () => (await device.on(first).heartbeat()).status, patience).toBe(401);
  const left = async (): Promise<number> => {
    const text = 'SELECT count(*)::int AS devices FROM device WHERE left(device, 8) = $1';
    const counts = urls.map((url) => queryDatabase<{ devices: number }>(url, text, [fleet.fleetId]));
    return (await Promise.all(counts)).flat().reduce((sum, { devices }) => sum + devices, 0);
  };
  const whole = await left();
  await expect.poll(left, patience).toBeLessThan(whole);
  await first.kill();
  expect((await second.admin('POST', '/fleets', { fleet_id: fleet.fleetId })).status).toBe(409);
  await expect.poll(async () => (await second.admin('GET', path)).status, patience).toBe(404);
  // The id is free some time after the fleet has gone, when no node can still be writing anything of it.
  await expect
    .poll(async () => (await second.admin('POST', '/fleets', { fleet_id: fleet.fleetId })).status, {
      timeout: 150_000,
      interval: 1_000,
    })
    .toBe(201);
  expect((await second.admin('GET', `${path}/counts`)).body).toMatchObject({ devices: 0 });
}, 240_000);
