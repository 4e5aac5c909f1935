/** Trial of the admin API by tokens that ask for more than it can do. */

import { expect, it } from 'vitest';
import { operatorSiege } from '../siege/operator-siege.ts';
import { tokenAttacks } from '../siege/token-attacks.ts';

/**
 * Short, with few devices, and not compared with what is seen without an attack: `npm run test:siege` prints both for
 * the whole of it.
 */
const siege = { devices: 5_000, seconds: 1, quietSeconds: 0 };
/**
 * Latency of half of the requests of another fleet, on a machine that makes the attack as well and may be busy besides.
 */
const latencyMsMax = 5_000;

it('whoever asks the admin API for more than it can do holds up no other fleet', async () => {
  for (const { name, during } of await operatorSiege(tokenAttacks, siege)) {
    expect(during.admin.p50Ms, name).toBeLessThan(latencyMsMax);
    expect(during.fresh.p50Ms, name).toBeLessThan(latencyMsMax);
  }
});
