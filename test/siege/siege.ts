import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Config } from '../../src/server/configuration/config.ts';
import type { TestDevice } from '../harness/devices/device.ts';
import { createFleet } from '../harness/devices/device.ts';
import { withTypeScript } from '../harness/machine/typescript.ts';
import { TestServer } from '../harness/server/server.ts';
import { cpuSeconds, ownMebibytes } from '../harness/server/vitals.ts';
import type { AttackerOptions } from './attacker-process.ts';
import type { Attack } from './attacks.ts';
import { type Witnessed, witness } from './witness.ts';

const witnesses = 4;

export interface SiegeResult extends Witnessed {
  name: string;
  grownMebibytes: number;
  /** CPU use in percent of one core, by all threads of the server. */
  cpuPercent: number;
}

/**
 * Measures devices that behave well while one group of attacks after another goes on, and before the first of them. All
 * live in one shard where there is one.
 * @throws Error when the server logs anything or ends, or a witness is not answered 201.
 */
export async function siege(
  attacks: readonly (readonly Attack[])[],
  clients: number,
  seconds: number,
  config: Partial<Config> = {},
): Promise<SiegeResult[]> {
  await using server = await TestServer.start(config);
  const fleet = await createFleet(server);
  const attacker = await fleet.createDevice();
  const devices: TestDevice[] = [];
  for (let i = 0; i < witnesses; i += 1) devices.push(await fleet.createDevice());
  await witness(devices, 1);
  const before = ownMebibytes(server);
  const measure = async (name: string): Promise<SiegeResult> => {
    const cpuBefore = cpuSeconds(server);
    const witnessed = await witness(devices, seconds);
    const cpuPercent = Math.round(((cpuSeconds(server) - cpuBefore) * 100) / seconds);
    if (!server.isRunning || server.stderr !== '')
      throw new Error(`${name}: the server says ${server.stderr}`);
    return { name, ...witnessed, grownMebibytes: Math.round(ownMebibytes(server) - before), cpuPercent };
  };
  const results = [await measure('nothing')];
  for (const together of attacks) {
    const names = together.map(({ name }) => name);
    const { port, ca } = server;
    const adminPort = Number(new URL(server.report.admin_url).port);
    const { fleetId, deviceId, secret } = attacker;
    const process = await startAttacker({
      names,
      target: { port, adminPort, ca },
      fleetId,
      deviceId,
      secret,
      clients,
    });
    try {
      results.push(await measure(names.join(', ')));
    } finally {
      process.kill('SIGKILL');
    }
  }
  return results;
}

export async function startAttacker(options: AttackerOptions): Promise<ChildProcess> {
  const file = new URL('attacker-process.ts', import.meta.url).pathname;
  const args = [...withTypeScript, file, JSON.stringify(options)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'exit').then(() => Promise.reject(new Error(`${options.names}: the attacker has ended`))),
  ]);
  return child;
}
