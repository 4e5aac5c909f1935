import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FairShare, PartyShare } from '../../src/core/fair-share.ts';

function takeAll(share: FairShare, owner: string): number {
  while (share.take(owner));
  return share.usedBy(owner);
}

it('leaves half to others when one is greedy', () => {
  const share = new FairShare(32);
  expect(takeAll(share, 'a')).toBe(16);
  expect(share.take('b')).toBe(true);
});

it('gives the whole of a limit of one to whoever comes first', () => {
  const share = new FairShare(1);
  expect(share.take('a')).toBe(true);
  expect(share.take('b')).toBe(false);
  share.release('a');
  expect(share.take('b')).toBe(true);
});

it('never refuses who has nothing while there is room, and never goes over its limit', () => {
  const step = fc.record({
    owner: fc.constantFrom('a', 'b', 'c', 'd'),
    amount: fc.integer({ min: 1, max: 5 }),
    isTaking: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.array(step, { maxLength: 200 }), (max, steps) => {
      const share = new FairShare(max);
      for (const { owner, amount, isTaking } of steps) {
        const [used, own] = [share.used, share.usedBy(owner)];
        if (isTaking) {
          const isTaken = share.take(owner, amount);
          if (own === 0) expect(isTaken).toBe(amount <= max - used);
          expect(share.used).toBe(isTaken ? used + amount : used);
        } else if (own > 0) share.release(owner, Math.min(own, amount));
        expect(share.used).toBeLessThanOrEqual(max);
      }
    }),
  );
});

it('shares among groups first, and leaves the members of each theirs', () => {
  const share = new PartyShare(64);
  const takeAll = (group: string, member: string): number => {
    let taken = 0;
    while (share.take({ group, member })) taken += 1;
    return taken;
  };
  expect([takeAll('a', '1'), takeAll('b', '1')]).toEqual([16, 16]);
  expect(takeAll('a', '2')).toBeGreaterThan(0);
  expect(share.take({ group: 'c', member: '1' })).toBe(true);
  for (let left = 16; left > 0; left -= 1) share.release({ group: 'b', member: '1' });
  expect(takeAll('b', '1')).toBeGreaterThan(8);
});
