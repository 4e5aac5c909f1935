/** Records that wait for actions, across another shard count. */

import { rmSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { remapReaders } from '../../../src/maintenance/reshard-folder/remap-readers.ts';
import { anyObject, createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { configWith } from '../../harness/server/config.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { killInMove, openForMoveToOne } from '../started-reshard.ts';

const patience = { timeout: 60_000, interval: 50 };
/** A run that fails once is out of the way until a new version is put or the server starts again. */
const config = { actionRetryMilliseconds: 3_600_000 };
const sendersCount = 9;
/** More of them by `ACTION_MOVE_KILLS=50`. */
const kills = Number(process.env.ACTION_MOVE_KILLS ?? 1);
/** A move of so little is soon over. */
const delayMsMax = 60;

let folder: string;
let server: TestServer;
let fleet: TestFleet;
let senders: TestDevice[];
/** One is written to by its id, the other by its tag. */
let receivers: TestDevice[];
/** Numbers that the action must be run for, by sender. */
let sent: number[][];

beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function start(shards: number): Promise<void> {
  server = await TestServer.start({ ...config, shards }, folder);
  if (fleet !== undefined) fleet.server = server;
}

/** Senders that have sent before there was an action, and an action that takes none of what they send from now on. */
async function begin(shards: number): Promise<void> {
  await start(shards);
  fleet = await createFleet(server);
  await fleet.putSchema('message', 'opened', anyObject);
  senders = [];
  for (let index = 0; index < sendersCount; index += 1) senders.push(await fleet.createDevice());
  receivers = [await fleet.createDevice(), await fleet.createDevice({ tags: ['hall'] })];
  sent = senders.map(() => []);
  await send(2);
  sent = senders.map(() => []);
  await putAction(() => true);
}

let nextNumber = 0;

async function send(each: number): Promise<void> {
  for (let time = 0; time < each; time += 1) {
    nextNumber += 1;
    await Promise.all(
      senders.map(async (sender, index) => {
        const payload = { sender: index, n: nextNumber };
        expect((await sender.on(server).request('POST', '/v1/msg/opened', payload)).status).toBe(201);
        sent[index]?.push(nextNumber);
      }),
    );
  }
}

/** A version that fails for the senders that are held. */
async function putAction(isHeld: (sender: number) => boolean): Promise<void> {
  const held = JSON.stringify(senders.map((_, index) => index).filter(isHeld));
  const source = `export default async (record, fleet) => {
    if (${held}.includes(record.payload.sender)) throw new Error('held');
    fleet.state.set('count', ((await fleet.state.get('count')) ?? 0) + 1);
    fleet.send('${receivers[0]?.deviceId}', 'relayed', record.payload);
    fleet.sendToTag('hall', 'relayed', record.payload);
  };`;
  const draft = { source, language: 'javascript', on: [{ kind: 'message', schema: 'opened' }] };
  const { status, body } = await server.admin('PUT', `/fleets/${fleet.fleetId}/actions/relay`, draft);
  expect(status, JSON.stringify(body)).toBeLessThan(300);
}

/** The numbers that a receiver has mail for, by sender, in mailbox order. */
async function arrivedAt(receiver: TestDevice): Promise<number[][]> {
  type Mails = { items: { payload: { sender: number; n: number } }[] };
  const { body } = await server.admin<Mails>('GET', `${receiver.adminPath}/mail?limit=1000`);
  const arrived: number[][] = senders.map(() => []);
  for (const { payload } of body.items) arrived[payload.sender]?.push(payload.n);
  return arrived;
}

/** How often the action has been run to its end. */
async function countedRuns(): Promise<number> {
  const record = { device: senders[0]?.deviceId, payload: {} };
  const source = `export default async (_, fleet) => fleet.log((await fleet.state.get('count')) ?? 0);`;
  const { body } = await server.admin<{ log: string[] }>(
    'POST',
    `/fleets/${fleet.fleetId}/actions/relay/test`,
    { record, draft: { source, language: 'javascript' } },
  );
  return Number(body.log[0]);
}

async function expectAllRun(): Promise<void> {
  type Status = { behind: number; in_hand: number; dead_letters: number; lost: number };
  const status = async () => {
    const { body } = await server.admin<Status>('GET', `/fleets/${fleet.fleetId}/actions/relay`);
    return [body.behind, body.in_hand, body.dead_letters, body.lost];
  };
  await expect.poll(status, patience).toEqual([0, 0, 0, 0]);
  for (const receiver of receivers) expect(await arrivedAt(receiver)).toEqual(sent);
  expect(await countedRuns()).toBe(sent.flat().length);
}

it('with another shard count, there and back, every record that waits for an action is run for once', async () => {
  await begin(3);
  await send(3);
  // A backlog of another age is carried along for each third of the senders, with what others have done behind it.
  for (const [turn, shards] of [1, 3, 2].entries()) {
    const isReleased = (sender: number): boolean => sender % 3 === turn;
    await putAction((sender) => !isReleased(sender));
    await expect
      .poll(async () => (await arrivedAt(receivers[1] as TestDevice)).filter((_, at) => isReleased(at)), {
        ...patience,
      })
      .toEqual(sent.filter((_, at) => isReleased(at)));
    if (turn % 2 === 0) await server.kill();
    else expect(await server.stop()).toBe(0);
    await start(shards);
    await send(2);
  }
  await putAction(() => false);
  await expectAllRun();
}, 240_000);

it('a record that a move to fewer shards noted before it fell back, and that was run for since, is not run for again', async () => {
  await begin(3);
  await send(3);
  await server.stop();
  // A kill just before the switch leaves this, once the next start has removed the copies.
  const { folder: data, move } = await openForMoveToOne(server.report);
  data.beginMove(move);
  await remapReaders(data, move, configWith(), new AbortController().signal);
  data.close();
  await start(3);
  await putAction(() => false);
  await expectAllRun();
  await server.stop();
  await start(1);
  await send(1);
  await expectAllRun();
});

it(
  'moves that are killed on their way lose and repeat no run',
  async () => {
    await begin(3);
    await send(3);
    for (let kill = 0; kill < kills; kill += 1) {
      await server.kill();
      const isDown = kill % 2 === 0;
      await killInMove(folder, isDown ? 1 : 3, kill % 4 < 2 ? 'copying' : 'removing', delayMsMax);
      // Half of the time the count that it was before.
      await start(Math.random() < 0.5 ? 1 : 3);
      await putAction((sender) => sender % 3 !== kill % 3);
      await send(1);
    }
    await putAction(() => false);
    await expectAllRun();
  },
  120_000 + kills * 20_000,
);
