import { expect, it } from 'vitest';
import { deviceKeyOf } from '../../../src/core/identity.ts';
import { TopTalkers } from '../../../src/device-api/limits/top-talkers.ts';

const deviceOf = (n: number) => deviceKeyOf('FLEET001', `D${String(n).padStart(9, '0')}`);

it('who talks most is found among any number of others, in bounded memory', () => {
  let nowMs = 0;
  const talkers = new TopTalkers(() => nowMs);
  // 10,000 a second, of which a tenth is one device's; each other one is heard once.
  for (let request = 0; request < 400_000; request += 1) {
    nowMs += 0.1;
    talkers.sample(request % 10 === 0 ? deviceOf(7) : deviceOf(100 + request));
  }
  const [first, ...others] = talkers.top(1_000_000);
  expect(first?.device).toBe(deviceOf(7));
  expect(first?.requestsPerSecond).toBeGreaterThan(700);
  expect(first?.requestsPerSecond).toBeLessThan(1_300);
  const sum = others.reduce((total, { requestsPerSecond }) => total + requestsPerSecond, 0);
  expect(sum, 'one request is not scaled up').toBeLessThan(9_000);
});

it('few requests are counted, not estimated: also those of a device that calls twice in a minute', () => {
  let nowMs = 0;
  const talkers = new TopTalkers(() => nowMs);
  const devices = 40;
  for (let second = 0; second < 600; second += 1) {
    nowMs += 1_000;
    talkers.sample(deviceOf(second % devices));
  }
  const all = talkers.top(devices);
  expect(all).toHaveLength(devices);
  for (const { requestsPerSecond } of all) expect(requestsPerSecond).toBeLessThanOrEqual(0.034);
  const sum = all.reduce((total, { requestsPerSecond }) => total + requestsPerSecond, 0);
  expect(sum).toBeGreaterThan(0.9);
  expect(sum).toBeLessThan(1.1);
});

it('after a flood, few requests are counted again', () => {
  let nowMs = 0;
  const talkers = new TopTalkers(() => nowMs);
  for (let request = 0; request < 400_000; request += 1) {
    nowMs += 0.1;
    talkers.sample(deviceOf(request));
  }
  for (let request = 0; request < 6_000; request += 1) {
    nowMs += 100;
    talkers.sample(deviceOf(request % 4));
  }
  const rates = talkers.top(4).map(({ requestsPerSecond }) => requestsPerSecond);
  expect(rates).toEqual([2.5, 2.5, 2.5, 2.5]);
});
