import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import {
  copyEnvironment,
  type SnapshotHold,
} from '../../../../src/storage/lmdb/environment/copy-environment.ts';
import { temporaryFolder } from '../../../harness/machine/temporary-folder.ts';
import { withTypeScript } from '../../../harness/machine/typescript.ts';
import type { Committed, CommittingRequest } from './committing-process.ts';

const copies = 150;
const copyingMsMax = 20_000;

/** Its answer; rejects if it ends instead. */
async function answer<T>(child: ChildProcess, request?: CommittingRequest): Promise<T> {
  const ended = new AbortController();
  const { signal } = ended;
  const exit = once(child, 'exit', { signal }).then(([status, by]) => {
    throw new Error(`the committing process ended by ${by ?? status}`);
  });
  try {
    if (request !== undefined) child.send(request);
    const [message] = await Promise.race([once(child, 'message', { signal }), exit]);
    return message as T;
  } finally {
    ended.abort();
    exit.catch(() => {});
  }
}

it('copies beside a process that commits all the time are whole, and cost it no commit', async () => {
  const folder = temporaryFolder();
  const source = join(folder, 'source');
  const child = fork(new URL('committing-process.ts', import.meta.url), [source], {
    execArgv: [...withTypeScript],
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  await answer(child);
  const hold: SnapshotHold = async () => {
    await answer(child, 'hold');
    return () => {
      child.send('release' satisfies CommittingRequest);
    };
  };
  const damages: string[] = [];
  const options = { mapBytesMax: 2 ** 30, hold, onDamaged: (reason: string) => damages.push(reason) };
  const until = performance.now() + copyingMsMax;
  let taken = 0;
  for (; taken < copies && performance.now() < until; taken += 1) {
    const target = join(folder, `copy-${taken}`);
    mkdirSync(target);
    await copyEnvironment(source, target, options);
    rmSync(target, { recursive: true });
  }
  const { commits, lost } = await answer<Committed>(child, 'stop');
  child.disconnect();
  expect(taken).toBeGreaterThan(20);
  expect(commits).toBeGreaterThan(taken);
  expect({ lost, damages }).toEqual({ lost: 0, damages: [] });
});
