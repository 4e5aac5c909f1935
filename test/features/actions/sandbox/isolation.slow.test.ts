/** The time of a run whose thread gets no processor. */

import { execFileSync, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { startActionsForTest } from './started-actions.ts';

/** How much less than others a thread of this process counts for the scheduler: its 19th figure. */
function niceOf(thread: string): number {
  const [, figures = ''] = readFileSync(`/proc/self/task/${thread}/stat`, 'latin1').split(') ');
  return Number(figures.split(' ')[16]);
}

it('a run whose thread has no processor for seconds is not blamed for that', async () => {
  const { runBody } = startActionsForTest();
  // In one piece, so that the engine cannot say meanwhile that it goes on.
  const inOnePiece = (length: number): string => `fleet.log((new Array(${length}) + '').length);`;
  // The quickest of several counts: with others beside it, the same takes more.
  const tries: number[] = [];
  while (tries.length < 5) tries.push((await runBody(inOnePiece(1_000_000))).cpuMilliseconds);
  const length = Math.round((1_000_000 * 60) / Math.max(1, Math.min(...tries)));
  const [thread] = readdirSync('/proc/self/task').filter((one) => niceOf(one) > 0);
  execFileSync('taskset', ['-pc', '0', thread ?? '']);
  const others = Array.from({ length: 6 }, () =>
    spawn('taskset', ['-c', '0', process.execPath, '-e', 'for (;;);']),
  );
  try {
    const limits = { cpuMilliseconds: 400, wallMilliseconds: 60_000 };
    const { error, wallMilliseconds } = await runBody(inOnePiece(length), { limits });
    expect(error).toBeUndefined();
    expect(wallMilliseconds).toBeGreaterThan(1_000);
  } finally {
    for (const other of others) other.kill();
  }
});
