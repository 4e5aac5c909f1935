import { expect, it } from 'vitest';
import type { Fleet } from '../../src/declarations/fleet.ts';
import type { ThreadConfig } from '../../src/threads/config.ts';
import { retentionOf } from '../../src/threads/log-retention.ts';

it('a fleet lowers the limit of all fleets for itself, and cannot raise it', () => {
  const declared: Partial<Fleet>[] = [
    { fleetId: 'PLAIN001' },
    { fleetId: 'LOWER001', logBytesMax: 100_000 },
    { fleetId: 'HIGHER01', logBytesMax: 9_000_000 },
  ];
  const fleets = { all: () => declared as Fleet[] };
  const limitsWith = (logBytesPerFleetMax: number): (number | undefined)[] => {
    const current = { logRetentionSeconds: 60, logBytesMax: 0, logBytesPerFleetMax };
    const { fleets: own } = retentionOf(fleets, 1, { settings: { current } } as ThreadConfig, 0)();
    return declared.map(({ fleetId = '' }) => own.get(fleetId)?.bytesMax);
  };
  expect(limitsWith(0)).toEqual([undefined, 100_000, 9_000_000]);
  expect(limitsWith(1_000_000)).toEqual([1_000_000, 100_000, 1_000_000]);
});
