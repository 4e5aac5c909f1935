import { spawnSync } from 'node:child_process';
import { setTimeout } from 'node:timers/promises';
import type { Figures } from '../result.ts';
import type { RunningServer } from '../servers/subject.ts';
import { statusOf } from './answer.ts';
import { runGenerator } from './generator.ts';
import { closedLoopByNode } from './open-loop.ts';
import type { Requests } from './requests.ts';

const script = new URL('wrk.lua', import.meta.url).pathname;

export interface ClosedLoopOptions {
  /** Sent in turn, each on whichever connection is free. */
  requests: Requests;
  /** That every answer must have. */
  status: number;
  connections: number;
  /** Length of the measurement, after the warm-up. */
  seconds: number;
  /** Left out of what is measured: handshakes, and code that is not compiled yet. */
  warmUpSeconds?: number;
  /** Stops early, when as many have been begun: for requests that can be sent once. Some more may follow. */
  requestsMax?: number;
}

/** How to get wrk; undefined where it is. */
export function missingWrk(): string | undefined {
  const found = spawnSync('wrk', ['--version']).error === undefined;
  return found ? undefined : 'wrk, which makes the load, is not installed: run bench/install-peers.sh.';
}

/** Closed loop: on each connection the next request waits for the last answer. @throws Error of `runGenerator`. */
export async function closedLoop(
  server: RunningServer,
  { requests, status, connections, seconds, warmUpSeconds = 1, requestsMax = 0 }: ClosedLoopOptions,
): Promise<Figures> {
  // wrk waits for the body that the answer to a HEAD declares and does not have.
  if (requests.first.startsWith('HEAD ')) {
    return closedLoopByNode(server, { requests, statuses: [status], connections, seconds });
  }
  const own = [requests.file, warmUpSeconds * 1_000, requestsMax, connections].map(String);
  const load = ['-t1', `-c${connections}`, `-d${Math.ceil(seconds + warmUpSeconds)}s`, '--timeout', '30s'];
  const args = [...load, '-s', script, server.url, '--', ...own];
  const before = await quietAnswers(server);
  if (before === undefined) await checkFirst(server, requests, status);
  const figures = await runGenerator('wrk', args, server);
  const after = await server.answersByStatus?.();
  for (const [other, count] of after ?? []) {
    const added = count - (before?.get(other) ?? 0);
    if (other !== status && added > 0) {
      throw new Error(`${added} answers had status ${other}, not ${status}: ${firstLine(requests)}`);
    }
  }
  return figures;
}

type Answers = Awaited<ReturnType<NonNullable<RunningServer['answersByStatus']>>>;

/** Answers by status once there come no more: of large requests some are counted after their client has left. */
async function quietAnswers(server: RunningServer): Promise<Answers | undefined> {
  let answers = await server.answersByStatus?.();
  for (let seen = ''; answers !== undefined && seen !== String([...answers]); ) {
    seen = String([...answers]);
    await setTimeout(50);
    answers = await server.answersByStatus?.();
  }
  return answers;
}

const firstLine = ({ first }: Requests): string => first.slice(0, first.indexOf('\r\n'));

/** wrk itself counts only answers from 400 up as wrong. */
async function checkFirst(server: RunningServer, requests: Requests, expected: number): Promise<void> {
  const status = await statusOf(server, requests.first);
  if (status !== expected) {
    throw new Error(`the answer had status ${status}, not ${expected}: ${firstLine(requests)}`);
  }
}
