import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TimingWheel } from '../../../../src/device/simulator/devices/timing-wheel.ts';

const timers = 12;
const action = fc.record({
  timer: fc.nat({ max: timers - 1 }),
  /** Beyond one turn of the wheel too. */
  inMs: fc.oneof(fc.nat({ max: 50 }), fc.nat({ max: 200_000 })),
  isCleared: fc.boolean(),
  thenMs: fc.oneof(fc.nat({ max: 20 }), fc.nat({ max: 70_000 })),
});

it('timers come at their time, each once, however often they are set anew', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
      const wheel = new TimingWheel(timers);
      const model = new Map<number, number>();
      let nowMs = 0;
      for (const { timer, inMs, isCleared, thenMs } of actions) {
        if (isCleared) {
          wheel.clear(timer);
          model.delete(timer);
        } else {
          wheel.set(timer, nowMs + inMs);
          model.set(timer, nowMs + inMs);
        }
        nowMs += thenMs;
        const fired = new Map<number, number>();
        wheel.advance(nowMs, (one, dueMs) => fired.set(one, dueMs));
        const due = [...model].filter(([, dueMs]) => dueMs <= nowMs && (thenMs > 0 || fired.size > 0));
        expect([...fired].sort()).toEqual(due.sort());
        for (const [one] of due) model.delete(one);
      }
      for (let timer = 0; timer < timers; timer += 1) expect(wheel.isSet(timer)).toBe(model.has(timer));
    }),
    { numRuns: 60 },
  );
});

it('a timer that is set or cleared while another comes keeps what it was told last', () => {
  const wheel = new TimingWheel(4);
  for (let timer = 0; timer < 4; timer += 1) wheel.set(timer, 10);
  const fired: string[] = [];
  wheel.advance(30, (timer, dueMs) => {
    fired.push(`${timer} at ${dueMs}`);
    if (timer !== 3) return;
    wheel.clear(2);
    wheel.set(1, 20);
  });
  expect(fired).toEqual(['3 at 10', '0 at 10', '1 at 20']);
});
