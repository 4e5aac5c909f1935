import { expect, it } from 'vitest';
import { FairQueue } from '../../../src/admin-api/server/fair-queue.ts';

const party = (group: string, member: string) => ({ group, member });

/** Takes all there is, one after another. */
function order(
  queue: FairQueue<string>,
  mayHave: (of: { group: string; member: string }) => boolean,
): string[] {
  const taken: string[] = [];
  for (let item = queue.next(mayHave); item !== undefined; item = queue.next(mayHave)) taken.push(item);
  return taken;
}

it('groups take turns, and so do the members of each, whoever came first and with however much', () => {
  const queue = new FairQueue<string>();
  for (const item of ['a1', 'a2', 'a3']) queue.add(party('A', 'a'), item);
  queue.add(party('A', 'b'), 'b1');
  for (const item of ['c1', 'c2']) queue.add(party('C', 'c'), item);
  expect(order(queue, () => true)).toEqual(['a1', 'c1', 'b1', 'c2', 'a2', 'a3']);
});

it('a party that may have no more is passed over, and keeps what it has', () => {
  const queue = new FairQueue<string>();
  queue.add(party('A', 'a'), 'a1');
  queue.add(party('A', 'b'), 'b1');
  expect(order(queue, ({ member }) => member !== 'a')).toEqual(['b1']);
  expect(order(queue, () => true)).toEqual(['a1']);
});

it('what is removed is not taken', () => {
  const queue = new FairQueue<string>();
  queue.add(party('A', 'a'), 'a1');
  queue.add(party('A', 'a'), 'a2');
  queue.remove(party('A', 'a'), 'a1');
  queue.remove(party('B', 'b'), 'b1');
  expect(order(queue, () => true)).toEqual(['a2']);
});
