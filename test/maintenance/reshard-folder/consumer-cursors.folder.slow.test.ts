/** Places of consumers and forwarders, across another shard count. */

import { rmSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { deviceKeyOf } from '../../../src/core/identity.ts';
import { shardOf } from '../../../src/domain/placement.ts';
import { remapReaders } from '../../../src/maintenance/reshard-folder/remap-readers.ts';
import { createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { Receiver } from '../../harness/features/receiver.ts';
import { fleetpost } from '../../harness/server/command.ts';
import { configWith } from '../../harness/server/config.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { killInMove, openForMoveToOne } from '../started-reshard.ts';

const devicesCount = 9;
/** More of them by `CONSUMER_MOVE_KILLS=50`. */
const kills = Number(process.env.CONSUMER_MOVE_KILLS ?? 1);
const patience = { timeout: 60_000 };
/** A move of so little is soon over. */
const delayMsMax = 60;

interface Batch {
  batch_id: string | null;
  records: { record_id: string }[];
}

let folder: string;
let server: TestServer;
let fleet: TestFleet;
let devices: TestDevice[];
/** Records that each consumer has acknowledged. */
let done: Map<string, Set<string>>;

beforeEach(async () => {
  folder = temporaryFolder();
  done = new Map([
    ['hall', new Set()],
    ['yard', new Set()],
  ]);
  server = await TestServer.start({ shards: 3 }, folder);
  fleet = await createFleet(server);
  devices = [];
  for (let index = 0; index < devicesCount; index += 1) devices.push(await fleet.createDevice());
  for (const name of done.keys()) await server.admin('PUT', consumer(name), {});
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const consumer = (name: string, verb = ''): string =>
  `/fleets/${fleet.fleetId}/consumers/${name}${verb === '' ? '' : `/${verb}`}`;

async function send(each: number): Promise<void> {
  for (let n = 0; n < each; n += 1) {
    const sent = devices.map((device) => device.on(server).request('POST', '/v1/msg/note', { n }));
    for (const answer of sent) expect((await answer).status).toBe(201);
  }
}

/** Fetches and acknowledges until that many batches are, or nothing is left. */
async function work(name: string, batches: number): Promise<void> {
  const ids = done.get(name) as Set<string>;
  for (let batch = 0; batch < batches; batch += 1) {
    const { body } = await server.admin<Batch>('POST', consumer(name, 'fetch'), { max: 4 });
    if (body.batch_id === null) return;
    for (const { record_id } of body.records) {
      expect(ids, 'what was acknowledged comes again').not.toContain(record_id);
    }
    const { status } = await server.admin('POST', consumer(name, 'acknowledge'), { batch_id: body.batch_id });
    expect(status).toBe(200);
    for (const { record_id } of body.records) ids.add(record_id);
  }
}

/** One more batch that is never acknowledged. */
const leave = (name: string) => server.admin('POST', consumer(name, 'fetch'), { max: 4 });

const idOf = ({ record_id }: { record_id: string }): string => record_id;

/** Ids of all records in the logs. */
async function recordIds(): Promise<string[]> {
  const url = `${server.report.admin_url}/admin/v1/fleets/${fleet.fleetId}/records`;
  const text = await (await fetch(url, { headers: { authorization: `Bearer ${server.token}` } })).text();
  return text
    .trim()
    .split('\n')
    .map((line) => idOf(JSON.parse(line) as { record_id: string }));
}

async function expectAllDone(): Promise<void> {
  const all = await recordIds();
  for (const [name, ids] of done) {
    await work(name, Number.POSITIVE_INFINITY);
    expect([...ids].sort(), name).toEqual([...all].sort());
    expect((await server.admin('GET', consumer(name))).body).toMatchObject({ behind: 0, lost: 0 });
  }
  await server.stop();
  const { stdout, status } = await fleetpost(['verify', '--data', folder]);
  expect(status, stdout).toBe(0);
  expect(stdout).toContain(' 2 consumers,');
}

/** Stops just before the switch to one shard, and starts with as many as there were. */
async function failToMove(): Promise<void> {
  await server.stop();
  const { folder: data, move } = await openForMoveToOne(server.report);
  data.beginMove(move);
  const config = configWith();
  // Asked to end in the midst of it, it goes no further, and the next one begins again.
  const ending = AbortSignal.abort(new Error('asked to end'));
  await expect(remapReaders(data, move, config, ending)).rejects.toThrow('asked to end');
  await remapReaders(data, move, config, new AbortController().signal);
  data.close();
  server = await TestServer.start({ shards: 3 }, folder);
}

it('with another shard count, there and back, a consumer is given what it has not acknowledged and nothing else', async () => {
  await send(4);
  await work('hall', 4);
  await failToMove();
  // At the positions that were noted for copies which are not there.
  await send(1);
  for (const [turn, shards] of [1, 3, 2].entries()) {
    await work('hall', 3 + turn);
    await work('yard', turn);
    await leave('hall');
    // Between a fetch and its acknowledgement.
    if (turn % 2 === 0) await server.kill();
    else expect(await server.stop()).toBe(0);
    server = await TestServer.start({ shards }, folder);
    await send(1);
  }
  await expectAllDone();
});

it('with another shard count, there and back, a forwarder sends on what was not taken, and nothing else again', async () => {
  await using receiver = await Receiver.start();
  /** Batches that it still takes; those behind them stay under way. */
  let takes = 2;
  receiver.react = () => (takes-- > 0 ? { status: 204 } : 'hang');
  const forwarder = `/fleets/${fleet.fleetId}/forwarders/hook`;
  const { body } = await server.admin<{ secret: string }>('PUT', forwarder, {
    ...{ type: 'webhook', url: receiver.url, tls: { ca: receiver.ca } },
    ...{ timeout_seconds: 60, batch_records_max: 4 },
  });
  receiver.secret = body.secret;
  const hanging = () => receiver.batches.filter(({ status }) => status === undefined);
  // A single device sends more records than the batches that are taken.
  await send(12);
  const owners = devices.map(({ fleetId, deviceId }) => shardOf(deviceKeyOf(fleetId, deviceId), 3));
  await expect.poll(() => hanging().length, patience).toBe(new Set(owners).size);
  expect(await server.stop()).toBe(0);

  takes = 2;
  const before = receiver.batches.length;
  server = await TestServer.start({ shards: 1 }, folder);
  await send(2);
  await expect.poll(() => receiver.batches.length - before, patience).toBe(3);
  await server.kill();

  takes = Number.POSITIVE_INFINITY;
  server = await TestServer.start({ shards: 3 }, folder);
  await send(2);
  const all = await recordIds();
  expect(all).toHaveLength(devicesCount * 16);
  await expect.poll(() => new Set(receiver.taken.map(idOf)).size, patience).toBe(all.length);
  // All lanes stood still at either end: what was under way alone comes twice.
  expect(receiver.taken.map(idOf).sort()).toEqual([...all].sort());
  expect(hanging().every(({ records }) => records.length <= 4)).toBe(true);
  expect(receiver.badSignatures).toEqual([]);
  await expect
    .poll(async () => (await server.admin('GET', forwarder)).body, patience)
    .toMatchObject({ state: 'running', behind: 0, lost: 0, dead_letters: 0 });
});

it(
  'moves that are killed on their way give nothing again that was acknowledged, and lose nothing',
  async () => {
    await send(3);
    for (let kill = 0; kill < kills; kill += 1) {
      await work('hall', 2);
      await work('yard', 1);
      await server.kill();
      await killInMove(
        folder,
        kill % 2 === 0 ? 1 : 3,
        Math.random() < 0.5 ? 'copying' : 'removing',
        delayMsMax,
      );
      // Half of the time the count that it was before.
      server = await TestServer.start({ shards: Math.random() < 0.5 ? 1 : 3 }, folder);
      await send(1);
    }
    await expectAllDone();
  },
  120_000 + kills * 20_000,
);
