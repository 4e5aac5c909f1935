import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RateLimiter } from '../../../src/core/limits/rate-limiter.ts';

function passing(limiter: RateLimiter, rate: number, nowSeconds: number, times: number): number {
  const waits = Array.from({ length: times }, () => limiter.take(rate, 1, nowSeconds));
  return waits.filter((wait) => wait === 0).length;
}

it('lets a burst pass, then what its rate allows, and a burst again after a pause', () => {
  const limiter = new RateLimiter(10);
  expect(passing(limiter, 100, 1_000, 2_000)).toBe(1_000);
  expect(passing(limiter, 100, 1_001, 2_000)).toBe(100);
  expect(passing(limiter, 100, 1_001.5, 2_000)).toBe(50);
  expect(passing(limiter, 100, 2_000, 2_000)).toBe(1_000);
});

it('says how long to wait, and counts nothing of what may not pass', () => {
  const limiter = new RateLimiter(1);
  expect(passing(limiter, 4, 1_000, 4)).toBe(4);
  for (let times = 0; times < 10; times += 1) expect(limiter.take(4, 1, 1_000)).toBe(0.25);
  expect(limiter.wait(4, 1, 1_000.25)).toBe(0);
  expect(limiter.take(4, 1, 1_000.25)).toBe(0);
});

it('lets anything pass when it is full, also what is worth more than it holds', () => {
  const limiter = new RateLimiter(1);
  expect(limiter.take(10, 50, 1_000)).toBe(0);
  expect(limiter.isFull(1_004)).toBe(false);
  // Full again, whatever it is that asks: a full bucket is never waited for.
  expect(limiter.take(10, 50, 1_004)).toBeCloseTo(1);
  expect(limiter.isFull(1_005)).toBe(true);
  expect(limiter.take(10, 50, 1_005)).toBe(0);
});

it('spreads evenly without a burst, and makes nothing up for a pause', () => {
  const limiter = new RateLimiter(0);
  const wait = (nowSeconds: number): number => {
    const seconds = limiter.wait(100, 10, nowSeconds);
    limiter.spend(100, 10, nowSeconds);
    return seconds;
  };
  expect(wait(1_000)).toBe(0);
  expect(wait(1_000)).toBeCloseTo(0.1);
  expect(wait(1_000)).toBeCloseTo(0.2);
  expect(wait(1_060)).toBe(0);
  expect(wait(1_060)).toBeCloseTo(0.1);
});

it('takes another rate at once', () => {
  const limiter = new RateLimiter(1);
  expect(passing(limiter, 1_000, 1_000, 2_000)).toBe(1_000);
  expect(limiter.take(1, 1, 1_000)).toBeCloseTo(1);
  expect(limiter.take(1, 1, 1_001)).toBe(0);
});

it('goes by the clock of its thread where no time is given', () => {
  const limiter = new RateLimiter(1);
  for (let times = 0; times < 2; times += 1) expect(limiter.take(2)).toBe(0);
  const wait = limiter.take(2);
  expect(wait).toBeGreaterThan(0);
  expect(wait).toBeLessThanOrEqual(0.5);
});

it('never lets more pass in any time than that time is worth, and a burst', () => {
  const asks = fc.array(fc.record({ afterMs: fc.nat(2_000), amount: fc.integer({ min: 1, max: 5 }) }));
  fc.assert(
    fc.property(fc.integer({ min: 5, max: 50 }), asks, (rate, given) => {
      const limiter = new RateLimiter(1);
      const passed: { atSeconds: number; amount: number }[] = [];
      let nowSeconds = 0;
      for (const { afterMs, amount } of given) {
        nowSeconds += afterMs / 1_000;
        if (limiter.take(rate, amount, nowSeconds) === 0) passed.push({ atSeconds: nowSeconds, amount });
      }
      for (const [first, { atSeconds: since }] of passed.entries()) {
        let sum = 0;
        for (const { atSeconds, amount } of passed.slice(first)) {
          sum += amount;
          expect(sum).toBeLessThanOrEqual((atSeconds - since + 1) * rate + 1e-6);
        }
      }
    }),
  );
});
