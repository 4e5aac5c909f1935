/** Hostile trial: slow, silent, wrong and flooding clients at once, as `npm run test:siege` sends them for longer. */

import { expect, it } from 'vitest';
import { adminAttacks, attacks, floods, halves } from '../../siege/attacks.ts';
import { siege } from '../../siege/siege.ts';

/** Small and short: `npm run test:siege` makes it thousands of clients, and prints what the devices see. */
const clients = 200;
const seconds = 2;
/**
 * Latency of one request of a device that behaves well, on a machine that makes the attack as well; more on one that does
 * other things, too.
 */
const latencyMsMax = 5_000;
const timesCalmMax = 16;
const growthMebibytesMax = 64;

it('slow, silent and wrong clients, and a device that floods, keep no other device from its 201', async () => {
  const config = {
    claiming: true,
    bodyMemoryBytesMax: 1_048_576,
    claimMemoryBytesMax: 262_144,
    deviceBytesPerSecondMax: 0,
  };
  const results = await siege([attacks, adminAttacks, halves, floods], clients, seconds, config);
  // Before the first attack.
  const calmMs = results[0]?.maxMs ?? 0;
  for (const { name, requests, maxMs, grownMebibytes } of results) {
    expect(requests, name).toBeGreaterThan(0);
    expect(maxMs, name).toBeLessThan(Math.max(latencyMsMax, timesCalmMax * calmMs));
    expect(grownMebibytes, name).toBeLessThan(growthMebibytesMax);
  }
});
