/** Shares of the audit log, by which each engine trims it. */

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { OwnerCounts } from '../../../src/features/audit/audit.ts';
import { fairLevel } from '../../../src/features/audit/postgres-audit.ts';

it('whoever has most is known after any changes', () => {
  const step = fc.record({
    owner: fc.constantFrom('a', 'b', 'c', 'd'),
    amount: fc.integer({ min: 0, max: 4 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const counts = new OwnerCounts();
      const model = new Map<string, number>();
      for (const { owner, amount } of steps) {
        const own = model.get(owner) ?? 0;
        if (amount > 0) counts.add(owner, amount);
        else if (own > 0) counts.remove(owner);
        model.set(owner, amount > 0 ? own + amount : Math.max(0, own - 1));
        const most = Math.max(...model.values());
        const found = counts.most();
        expect(found === undefined ? 0 : model.get(found)).toBe(most);
        expect(counts.total).toBe([...model.values()].reduce((sum, one) => sum + one, 0));
      }
    }),
  );
});

it('a level leaves as much as fits, and takes nothing of who has less', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(1_000), { maxLength: 20 }),
      fc.integer({ min: 1, max: 5_000 }),
      (counts, max) => {
        const level = fairLevel(counts, max);
        const kept = counts.map((count) => Math.min(count, level)).reduce((sum, count) => sum + count, 0);
        const over = counts.filter((count) => count > level).length;
        expect(kept).toBeLessThanOrEqual(max);
        if (over > 0) expect(kept + over).toBeGreaterThan(max);
      },
    ),
  );
});
