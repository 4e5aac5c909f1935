import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { DeviceKey } from '../../src/core/identity.ts';
import { shardOf } from '../../src/domain/placement.ts';

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const device = fc
  .array(fc.constantFrom(...alphabet), { minLength: 18, maxLength: 18 })
  .map((characters) => characters.join('') as DeviceKey);

it('agrees with the published algorithm, so that data on disk is found for ever', () => {
  // Computed with the paper's code in Python over 64-bit FNV-1a, for 1, 2, 3, 7, 64 and 256 shards.
  const known: [string, number[]][] = [
    ['iK2ZWeqhFWCEPyYngF', [0, 0, 0, 0, 17, 17]],
    ['b51yBMWXaSCrUZoL8g', [0, 1, 2, 6, 6, 6]],
    ['5ubbbPIa84yRnBUbHo', [0, 0, 0, 4, 39, 239]],
  ];
  for (const [key, places] of known) {
    expect([1, 2, 3, 7, 64, 256].map((shards) => shardOf(key as DeviceKey, shards))).toEqual(places);
  }
});

it('a shard more moves devices to the new shard only', () => {
  fc.assert(
    fc.property(device, fc.integer({ min: 1, max: 255 }), (key, shards) => {
      const before = shardOf(key, shards);
      const after = shardOf(key, shards + 1);
      expect(after === before || after === shards).toBe(true);
    }),
  );
});

it('spreads devices evenly', () => {
  const counts = new Array(8).fill(0);
  for (let i = 0; i < 80_000; i += 1) {
    counts[shardOf(`FLEET001D${String(i).padStart(9, '0')}` as DeviceKey, 8)] += 1;
  }
  for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(500);
});
