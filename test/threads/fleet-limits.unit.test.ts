import { expect, it, vi } from 'vitest';
import type { Fleet } from '../../src/declarations/fleet.ts';
import type { ThreadConfig } from '../../src/threads/config.ts';
import { mailBytesMaxOf, onceASecond, retentionOf } from '../../src/threads/fleet-limits.ts';

const settingsOf = (current: Partial<ThreadConfig['settings']['current']>): ThreadConfig =>
  ({ settings: { current } }) as ThreadConfig;

it('a fleet lowers the limit of all fleets on its records for itself, and cannot raise it', () => {
  const declared: Partial<Fleet>[] = [
    { fleetId: 'PLAIN001' },
    { fleetId: 'LOWER001', logBytesMax: 100_000 },
    { fleetId: 'HIGHER01', logBytesMax: 9_000_000 },
  ];
  const fleets = { all: () => declared as Fleet[] };
  const limitsWith = (logBytesPerFleetMax: number): (number | undefined)[] => {
    const config = settingsOf({ logRetentionSeconds: 60, logBytesMax: 0, logBytesPerFleetMax });
    const { fleets: own } = retentionOf(fleets, 1, config, 0)();
    return declared.map(({ fleetId = '' }) => own.get(fleetId)?.bytesMax);
  };
  expect(limitsWith(0)).toEqual([undefined, 100_000, 9_000_000]);
  expect(limitsWith(1_000_000)).toEqual([1_000_000, 100_000, 1_000_000]);
});

it('nor on its mail, of which a shard may have what the others leave', () => {
  const own = new Map([
    ['LOWER001', 100_000],
    ['HIGHER01', 9_000_000],
  ]);
  const fleets = {
    get: (fleetId: string) =>
      ({ fleetId, ...(own.has(fleetId) && { mailBytesMax: own.get(fleetId) }) }) as Fleet,
  };
  const limitsWith = (mailBytesPerFleetMax: number): number[] => {
    const max = mailBytesMaxOf(fleets, settingsOf({ mailBytesPerFleetMax }), () => 40_000);
    return ['PLAIN001', ...own.keys()].map(max);
  };
  expect(limitsWith(0)).toEqual([Number.POSITIVE_INFINITY, 60_000, 8_960_000]);
  expect(limitsWith(1_000_000)).toEqual([960_000, 60_000, 960_000]);
});

it('the other shards are asked for the bytes of a fleet once a second', () => {
  vi.useFakeTimers();
  try {
    const asked: string[] = [];
    const bytes = onceASecond((fleetId) => asked.push(fleetId));
    expect(['A', 'A', 'B', 'A'].map(bytes)).toEqual([1, 1, 2, 1]);
    vi.advanceTimersByTime(1_000);
    expect(bytes('A')).toBe(3);
  } finally {
    vi.useRealTimers();
  }
});
