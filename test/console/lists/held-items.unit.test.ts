import { expect, it } from 'vitest';
import { heldItems } from '../../../src/console/lists/held-items.ts';

interface Letter {
  id: string;
  diedAt: string;
}

const itemsOf = { keyOf: ({ id }: Letter) => id, timeOf: ({ diedAt }: Letter) => diedAt };
const letters = (...ids: string[]) => ids.map((id) => ({ id, diedAt: id.slice(-1) }));

function shown(held: string[], latest: string[], next: string | null = null, settled: string[] = []) {
  const { items, fresh } = heldItems(
    { items: letters(...held), next: null },
    { items: letters(...latest), next },
    new Set(settled),
    itemsOf,
  );
  return [...items.map(({ id }) => id), fresh];
}

it('what is new is counted and moves no row, and the latest is first', () => {
  expect(shown(['b1', 'a3', 'c2'], ['b1', 'a3', 'c2'])).toEqual(['a3', 'c2', 'b1', 0]);
  expect(shown(['b1', 'a3'], ['d5', 'b1', 'c4', 'a3'])).toEqual(['a3', 'b1', 2]);
});

it('what has gone is left out: of a page with a next one, what something was done with', () => {
  expect(shown(['a3', 'c2', 'b1'], ['a3', 'b1'])).toEqual(['a3', 'b1', 0]);
  expect(shown(['a3', 'c2', 'b1'], ['d4', 'a3'], 'more')).toEqual(['a3', 'c2', 'b1', 1]);
  expect(shown(['a3', 'c2', 'b1'], ['a3', 'b1', 'x0'], 'more', ['c2'])).toEqual(['a3', 'b1', 'x0', 0]);
  // Not replayed, its mailbox is full: it is still there.
  expect(shown(['a3', 'c2'], ['a3', 'c2'], null, ['c2'])).toEqual(['a3', 'c2', 0]);
});
