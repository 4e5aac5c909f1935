/** Copies between engines that are killed at any moment. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DataFolder } from '../../../src/storage/lmdb/environment/data-folder.ts';
import { openPostgresShard } from '../../../src/storage/postgres/writes/open-shard.ts';
import { createFleet } from '../../harness/devices/device.ts';
import { importDevices } from '../../harness/features/broadcast.ts';
import { fleetpost } from '../../harness/server/command.ts';
import { mainFile, TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { optionsOf } from '../../storage/contract/postgres-engine.ts';
import { fillShards } from '../shard-records.ts';
import { type CopiedKind, copy, copyArguments, emptyDatabases } from './copying.ts';

/** More of them by `COPY_KILLS=100`. */
const kills = Number(process.env.COPY_KILLS ?? 4);
const killsInARow = Math.min(4, kills / 2);
const shards = 2;
const devicesCount = 1_000;
/** A command has begun with its work after some of the first, and is done with it within the second. */
const startMs = 300;
const copyMsMax = 1_500;

const folder = temporaryFolder();
const data = join(folder, 'data');
let whole: CopiedKind[];

beforeAll(async () => {
  mkdirSync(data);
  await using server = await TestServer.start({ shards }, data);
  await importDevices(await createFleet(server), { count: devicesCount, tags: ['moved'] });
  await server.stop();
  await fillShards(server.report);
  whole = await copy([data], await emptyDatabases(shards));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Starts a copy and kills it somewhere on its way. Answers whether it had come to its end before. */
async function killOnTheWay(from: readonly string[], to: readonly string[]): Promise<boolean> {
  const child = spawn(process.execPath, [mainFile, ...copyArguments(from, to)], { stdio: 'ignore' });
  const exited = once(child, 'exit');
  const waiting = new AbortController();
  const killed = wait(startMs + Math.random() * copyMsMax, undefined, waiting).catch(() => {});
  await Promise.race([exited, killed]);
  waiting.abort();
  child.kill('SIGKILL');
  await exited;
  return child.exitCode === 0;
}

/** Tells whether a server would take what was copied so far. */
async function isServed(to: readonly string[]): Promise<boolean> {
  const [place = ''] = to;
  try {
    if (place.startsWith('postgres:')) {
      // A server opens all of them. At the very end, when everything was compared, the first is the last to be let go.
      const shard = await openPostgresShard(optionsOf(place));
      await shard.close();
    } else DataFolder.openStopped(place).close();
    return true;
  } catch (error) {
    expect((error as Error).message).toMatch(
      /is unfinished|is incomplete|"fleetpost migrate"|[Nn]o data folder/,
    );
    return false;
  }
}

/** Expects nothing lost or added on the way: another copy finds the same. */
async function expectWhole(copied: readonly string[]): Promise<void> {
  const isFolder = !copied[0]?.startsWith('postgres:');
  const elsewhere = isFolder ? await emptyDatabases(shards) : [join(folder, 'elsewhere')];
  expect(await copy(copied, elsewhere)).toEqual(whole);
  if (!isFolder) rmSync(elsewhere[0] ?? '', { recursive: true });
}

it(
  'a copy that is killed at any moment goes on to the same end, and what it goes into is not served before',
  async () => {
    let left = kills;
    let before = 0;
    for (let round = 0; left > 0; round += 1) {
      const urls = await emptyDatabases(shards);
      const back = join(folder, `back-${round}`);
      for (const [from, to] of [
        [[data], urls],
        [urls, [back]],
      ] as const) {
        let hasEnded = false;
        for (let inARow = 0; inARow < killsInARow && !hasEnded; inARow += 1) {
          hasEnded = await killOnTheWay(from, to);
          left -= 1;
          if (hasEnded) continue;
          before += 1;
          // Killed behind its last statement and in front of its exit, it is whole.
          if (!(await isServed(to))) continue;
          await expectWhole(to);
          hasEnded = true;
        }
        if (!hasEnded) expect(await copy(from, to)).toEqual(whole);
      }
      expect(await fleetpost(['verify', '--data', back])).toMatchObject({ status: 0 });
      rmSync(back, { recursive: true });
    }
    if (kills > 10) console.log(`${kills} kills, ${before} of them before the end of the copy`);
  },
  60_000 + kills * 20_000,
);
