import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mainFile } from '../harness/server.ts';
import type { Random } from './random.ts';

/** A start takes a second on an idle machine. */
const delayMsMax = 1_500;

/** A start that is killed before, or just when, it is ready. */
export async function killedStart(folder: string, shards: number, random: Random): Promise<void> {
  const child = spawn(process.execPath, [mainFile, 'serve', '--no-parent'], {
    env: {
      ...process.env,
      FLEETPOST_LISTEN: '127.0.0.1:0',
      FLEETPOST_ADMIN: '127.0.0.1:0',
      FLEETPOST_SHARDS: String(shards),
      FLEETPOST_DATA: folder,
      FLEETPOST_LOG_LEVEL: 'silent',
    },
    stdio: 'ignore',
  });
  const exited = once(child, 'exit');
  const delayMs = random.integer(100, delayMsMax);
  await new Promise((resolve) => setTimeout(resolve, delayMs));
  child.kill('SIGKILL');
  await exited;
}
