import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Move } from '../../src/domain/placement.ts';
import { DataFolder } from '../../src/storage/lmdb/environment/data-folder.ts';
import { endOfShardLog } from '../../src/storage/lmdb/reshard/move-log.ts';
import { mainFile, type ServerReport } from '../harness/server/server.ts';
import { eachShard } from '../harness/storage/log.ts';

/** A start without a move takes about a second. */
const startMsMax = 1_500;

interface Manifest {
  shards: number;
  move?: { from: number; to: number };
}

export type MovePhase = 'copying' | 'removing' | 'none';

export function manifestOf(data: string): Manifest {
  return JSON.parse(readFileSync(join(data, 'manifest.json'), 'utf8')) as Manifest;
}

export function phaseOf({ shards, move }: Manifest): MovePhase {
  if (move === undefined) return 'none';
  return shards === move.from ? 'copying' : 'removing';
}

/** A server that moves the folder to that many shards first. */
export function startMove(data: string, shards: number): ChildProcess {
  const args = ['serve', '--no-parent', '--data', data, '--shards', String(shards)];
  const free = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
  return spawn(process.execPath, [mainFile, ...args, ...free], { stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Settles once the manifest has changed and says `phase`; or once the server is ready, when that is missed. */
export async function reached(child: ChildProcess, data: string, phase: MovePhase): Promise<void> {
  let isReady = false;
  child.stdout?.once('data', () => {
    isReady = true;
  });
  const before = JSON.stringify(manifestOf(data));
  while (!isReady && child.exitCode === null) {
    const now = manifestOf(data);
    if (JSON.stringify(now) !== before && phaseOf(now) === phase) return;
    await wait(1);
  }
}

/** Starts a move and kills it somewhere in the phase aimed at, at most `delayMsMax` after it was seen there. */
export async function killInMove(
  data: string,
  shards: number,
  aim: MovePhase,
  delayMsMax: number,
): Promise<void> {
  const child = startMove(data, shards);
  child.stderr?.resume();
  const exited = once(child, 'exit');
  if (aim === 'none') await wait(Math.random() * startMsMax);
  else await reached(child, data, aim);
  await wait(Math.random() * delayMsMax);
  child.kill('SIGKILL');
  await exited;
}

/** The folder of a stopped server, and the move to one shard that a start would begin. The folder is closed by the caller. */
export async function openForMoveToOne(report: ServerReport): Promise<{ folder: DataFolder; move: Move }> {
  const logEnds: number[] = [];
  await eachShard(report, (environment) => {
    logEnds.push(endOfShardLog(environment));
  });
  const folder = DataFolder.open(report.data, 'lmdb', report.shards);
  return { folder, move: { from: report.shards, to: 1, logEnds: logEnds.slice(0, 1) } };
}
