import type { Config } from '../../src/core/config.ts';
import type { TestDevice } from '../harness/device.ts';
import { createFleet } from '../harness/device.ts';
import { TestServer } from '../harness/server.ts';
import { ownMebibytes } from '../robustness/vitals.ts';
import type { Attack } from './attacks.ts';
import { type Witnessed, witness } from './witness.ts';

const witnesses = 4;

export interface SiegeResult extends Witnessed {
  name: string;
  grownMebibytes: number;
}

/**
 * What devices that behave well see while one attack after another goes on, and before the first of them. All
 * live in one shard where there is one.
 * @throws Error when the server logs anything or ends, or a witness is not answered 201.
 */
export async function siege(
  attacks: readonly Attack[],
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
    const witnessed = await witness(devices, seconds);
    if (!server.isRunning || server.stderr !== '')
      throw new Error(`${name}: the server says ${server.stderr}`);
    return { name, ...witnessed, grownMebibytes: Math.round(ownMebibytes(server) - before) };
  };
  const results = [await measure('nothing')];
  for (const { name, start } of attacks) {
    const stop = await start(server, attacker, clients);
    try {
      results.push(await measure(name));
    } finally {
      stop();
    }
  }
  return results;
}
