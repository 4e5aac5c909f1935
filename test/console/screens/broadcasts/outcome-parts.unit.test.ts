import { expect, it } from 'vitest';
import { countedParts, outcomeSummary } from '../../../../src/console/screens/broadcasts/outcome-parts.ts';
import { broadcastMailStates } from '../../../../src/contract/broadcast.ts';

const outcomes = {
  delayed: 1,
  queued: 24,
  acked: 158,
  rejected: 20,
  expired: 3,
  withdrawn: 0,
  replaced: 0,
  over_requeued: 1,
  mailbox_full: 0,
  unknown: 2,
};

it('what became of a broadcast is parted so that each device is in one part', () => {
  const parts = countedParts({ queued: 209, refused: 4 }, outcomes);
  expect(parts.reduce((sum, { count }) => sum + count, 0)).toBe(213);
  expect(parts.find(({ name }) => name === 'Waiting')?.count).toBe(25);
  expect(parts.flatMap(({ states }) => states).sort()).toEqual([...broadcastMailStates].sort());
});

it('until its mails are counted, what is queued waits: nothing says that it was taken', () => {
  const parts = countedParts({ queued: 7, refused: 3 }, undefined).filter(({ count }) => count > 0);
  expect(parts.map(({ name, count }) => [name, count])).toEqual([
    ['Waiting', 7],
    ['Not queued', 3],
  ]);
});

it('a list says whom a broadcast failed, then who waits, and that all took it only if all did', () => {
  const none = Object.fromEntries(broadcastMailStates.map((state) => [state, 0])) as typeof outcomes;
  const textOf = (refused: number, some: Partial<typeof outcomes>): string => {
    const { text, more } = outcomeSummary({ queued: 9, refused }, { ...none, ...some });
    return text + more;
  };
  expect(textOf(2, { rejected: 1, queued: 1 })).toBe('3 failed, 1 waits');
  expect(textOf(0, { acked: 5, delayed: 4 })).toBe('4 wait');
  expect(textOf(0, { acked: 8, withdrawn: 1 })).toBe('ended');
  expect(textOf(0, { acked: 9 })).toBe('all acknowledged');
});
