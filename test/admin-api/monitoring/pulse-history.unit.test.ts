import { afterEach, expect, it, vi } from 'vitest';
import { PulseHistory, pulseColumns } from '../../../src/admin-api/monitoring/pulse-history.ts';
import { type PulseKind, pulseKinds } from '../../../src/domain/pulse-kinds.ts';

const minuteMs = 60_000;
/** A whole minute. */
const startMs = 29_000_000 * minuteMs;
const histories: PulseHistory[] = [];
afterEach(() => {
  for (const one of histories.splice(0)) one.close();
  vi.useRealTimers();
});

function countsOf(counts: Partial<Record<PulseKind, number>>): number[] {
  return pulseKinds.map((kind) => counts[kind] ?? 0);
}

/** A history whose counts are these, each taken once. */
function historyOf(taken: [string, number[]][][], devicesOf = async () => ({ connected: 2, active: 7 })) {
  vi.useFakeTimers({ now: startMs });
  const history = new PulseHistory({ takePulses: async () => taken.shift() ?? [], devicesOf });
  histories.push(history);
  const columnsOf = async (fleetId: string) => {
    const { fromMs, minutes } = await history.of(fleetId);
    const column = (name: (typeof pulseColumns)[number]) =>
      minutes.map((cells) => cells[pulseColumns.indexOf(name)]);
    return { fromMs, heartbeats: column('heartbeats'), refused: column('refused'), active: column('active') };
  };
  return { history, columnsOf };
}

it('counts are added to their minute, and devices counted once in each', async () => {
  const { columnsOf } = historyOf([
    [['FLEET001', countsOf({ heartbeats: 5, refused: 1 })]],
    [['FLEET001', countsOf({ heartbeats: 3 })]],
    [['FLEET002', countsOf({ heartbeats: 1 })]],
  ]);
  await vi.advanceTimersByTimeAsync(30_000);
  await vi.advanceTimersByTimeAsync(minuteMs);
  expect(await columnsOf('FLEET001')).toEqual({
    fromMs: startMs,
    heartbeats: [8, 0],
    refused: [1, 0],
    active: [7, 7],
  });
  expect(await columnsOf('NOTRAFFI')).toEqual({
    fromMs: startMs,
    heartbeats: [0, 0],
    refused: [0, 0],
    active: [Number.NaN, Number.NaN],
  });
});

it('an hour is kept, of minutes without requests too, and a fleet that had none for that long no more', async () => {
  const devicesOf = vi.fn(async () => ({ connected: 0, active: 1 }));
  const { columnsOf } = historyOf([[['FLEET001', countsOf({ heartbeats: 5 })]]], devicesOf);
  await vi.advanceTimersByTimeAsync(59 * minuteMs);
  const hour = await columnsOf('FLEET001');
  expect(hour.heartbeats).toEqual([5, ...Array(59).fill(0)]);
  expect(hour.active).toEqual(Array(60).fill(1));
  await vi.advanceTimersByTimeAsync(5 * minuteMs);
  const later = await columnsOf('FLEET001');
  expect([later.fromMs, later.heartbeats]).toEqual([startMs + 5 * minuteMs, Array(60).fill(0)]);
  const counted = devicesOf.mock.calls.length;
  await vi.advanceTimersByTimeAsync(5 * minuteMs);
  expect(devicesOf).toHaveBeenCalledTimes(counted);
});

it('devices that take long to count, or fail to be counted, leave gaps', async () => {
  const { columnsOf } = historyOf([[['FLEET001', countsOf({ heartbeats: 5 })]]], async () => {
    throw new Error('the fleet is gone');
  });
  await vi.advanceTimersByTimeAsync(minuteMs);
  expect((await columnsOf('FLEET001')).active).toEqual([Number.NaN, Number.NaN]);
});
