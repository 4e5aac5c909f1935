/** Moves to another shard count that are stopped or killed. */

import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet } from '../../harness/devices/device.ts';
import { type ServerReport, shards, TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { fillShards, readShardRecords, type ShardRecords } from '../shard-records.ts';
import { killInMove, type MovePhase, manifestOf, phaseOf, reached, startMove } from '../started-reshard.ts';

/** More of them by `SHARD_MOVE_KILLS=200`. */
const kills = Number(process.env.SHARD_MOVE_KILLS ?? 3);
const killsPerCheck = 6;
const devicesCount = 2_000;
const shardsMax = 6;
/** A move of that many devices takes some hundred milliseconds, in each of its two phases. */
const delayMsMax = 150;

interface Kill {
  count: number;
  aim: MovePhase;
  found: MovePhase;
}

/** Starts a move to `count` shards and kills it somewhere in the phase aimed at. */
async function killOnTheWay(data: string, count: number, aim: MovePhase): Promise<Kill> {
  await killInMove(data, count, aim, delayMsMax);
  return { count, aim, found: phaseOf(manifestOf(data)) };
}

/** Picks the count for the next start: for a move that was killed, its target or the one before; or any other. */
function nextCount(data: string): number {
  const { shards, move } = manifestOf(data);
  const any = 1 + ((shards + Math.floor(Math.random() * (shardsMax - 1))) % shardsMax);
  const choices = move === undefined ? [any] : [any, move.from, move.to];
  return choices[Math.floor(Math.random() * choices.length)] ?? any;
}

let report: ServerReport;
let before: ShardRecords;

beforeAll(async () => {
  const server = await TestServer.start({}, temporaryFolder());
  report = server.report;
  const fleet = await createFleet(server);
  // Answered as a stream of secrets, which nobody needs here.
  const path = `${report.admin_url}/admin/v1/fleets/${fleet.fleetId}/devices:import`;
  const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' };
  const answer = await fetch(path, {
    method: 'POST',
    headers,
    body: JSON.stringify({ count: devicesCount, tags: ['moved'] }),
  });
  expect(answer.status).toBe(200);
  await answer.text();
  await server.stop();
  await fillShards(report);
  before = await readShardRecords(report);
  expect(before.records.length).toBeGreaterThan(devicesCount * 15);
});

afterAll(() => rmSync(report.data, { recursive: true }));

/** Starts with that count, to the end, and finds everything as it was. */
async function expectKept(count: number, context: string): Promise<void> {
  await using server = await TestServer.start({ shards: count }, report.data);
  await server.stop();
  const { records, misplaced, disordered } = await readShardRecords(server.report);
  expect(records.length, context).toBe(before.records.length);
  expect(records, context).toEqual(before.records);
  expect([misplaced, disordered], context).toEqual([[], []]);
  expect(phaseOf(manifestOf(report.data))).toBe('none');
}

it('a signal stops a move cleanly, and the next start goes on', async () => {
  const child = startMove(report.data, shards + 1);
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const exited = once(child, 'exit');
  await reached(child, report.data, 'copying');
  child.kill('SIGTERM');
  expect((await exited)[0]).toBe(0);
  expect(stderr).not.toMatch(/unexpected|Error/);
  await expectKept(shards + 2, stderr);
});

const killsTimeoutMs = 60_000 + kills * 30_000;

it(
  'a move that is killed at any moment loses and doubles nothing, whatever the next start is for',
  async () => {
    const history: Kill[] = [];
    const aims: MovePhase[] = ['copying', 'removing', 'copying', 'none'];
    for (let kill = 0; kill < kills; kill += 1) {
      history.push(
        await killOnTheWay(report.data, nextCount(report.data), aims[kill % aims.length] ?? 'none'),
      );
      if ((kill + 1) % killsPerCheck > 0 && kill + 1 < kills) continue;
      await expectKept(nextCount(report.data), JSON.stringify(history));
    }
    if (kills > killsPerCheck) console.log(`${kills} kills, found while ${tally(history)}`);
  },
  killsTimeoutMs,
);

function tally(history: readonly Kill[]): string {
  const counted = (phase: MovePhase): number => history.filter(({ found }) => found === phase).length;
  return `copying: ${counted('copying')}, removing: ${counted('removing')}, neither: ${counted('none')}`;
}
