import { expect, it } from 'vitest';
import { pulseLines } from '../../../../src/console/screens/now/pulse.ts';
import type { PulseDocument } from '../../../../src/contract/monitoring/pulse.ts';

const pulse: PulseDocument = {
  time: '2026-11-26T12:02:20.000Z',
  from: '2026-11-26T12:00:00.000Z',
  last_seconds: 20,
  heartbeats: [60, 120, 40],
  datapoints: [0, 600, 20],
  messages: [0, 0, 0],
  mailbox: [0, 0, 0],
  syncs: [0, 0, 0],
  other: [0, 0, 0],
  refused: [0, 60, 0],
  connected: [null, 2, 2],
  active: [null, 7, null],
  busiest: [],
};

it('a pulse is drawn in requests a second, each minute at its end, the running one up to now', () => {
  const { times, requests, refused, active, kinds } = pulseLines(pulse);
  const from = Date.parse(pulse.from) / 1_000;
  expect(times).toEqual([from + 60, from + 120, from + 140]);
  expect(requests).toEqual([1, 13, 3]);
  expect(refused).toEqual([0, 1, 0]);
  expect(active).toEqual([null, 7, null]);
  expect(kinds).toEqual([
    { name: 'heartbeats', perSecond: 2 },
    { name: 'datapoints', perSecond: 10 },
  ]);
});

it('a minute that has only begun is left out', () => {
  expect(pulseLines({ ...pulse, last_seconds: 9 }).requests).toEqual([1, 13]);
});
