import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { generateUuid } from '../../../../src/core/uuid.ts';
import { History } from '../../../../src/features/actions/runs/history.ts';
import type { ActionJournal } from '../../../../src/features/actions/tables.ts';
import { openJournal } from '../../../../src/maintenance/environments.ts';
import { temporaryFolder } from '../../../harness/server/server.ts';

const action = generateUuid();
const other = generateUuid();

let folder: string;
let journal: ActionJournal;
beforeEach(() => {
  folder = temporaryFolder();
  journal = openJournal(join(folder, 'actions'), { mapBytesMax: 2 ** 26, diskFreeBytesMin: 0 });
});
afterEach(async () => {
  await journal.close();
  rmSync(folder, { recursive: true, force: true });
});

type Entry = { number: number; text: string };

describe('what is kept of an action', () => {
  it('is the newest so many entries, and of no other action any less', async () => {
    const history = new History<Entry>(journal.tables.runs);
    await add(history, 10, 5);
    expect(numbers(history)).toEqual([6, 7, 8, 9, 10]);
    expect(history.count(other)).toBe(1);
  });

  it('is fewer soon after the limit was lowered, however many there were', async () => {
    await add(new History<Entry>(journal.tables.runs), 300, 300);
    const later = new History<Entry>(journal.tables.runs);
    await add(later, 64, 3);
    expect(later.count(action)).toBeLessThan(3 + 64);
    expect(numbers(later).slice(-3)).toEqual([362, 363, 364]);
  });
});

describe('a page', () => {
  it('of a search is found in turns of few entries, and ends after many', async () => {
    const history = new History<Entry>(journal.tables.runs);
    await add(history, 10_600, 20_000);
    let entries = 0;
    const perTurn: number[] = [];
    const turn = async () => {
      journal.refresh();
      perTurn.push(entries);
      entries = 0;
    };
    const find = (numbers: readonly number[], after?: number) => {
      const isWanted = ({ number }: Entry): boolean => {
        entries += 1;
        return numbers.includes(number);
      };
      return history.page(action, { limit: 2, ...(after !== undefined && { after }) }, isWanted, turn);
    };
    const first = await find([10_600, 9_000, 3]);
    expect(first.items.map(({ number }) => number)).toEqual([10_600, 9_000]);
    const none = await find([3], Number(first.next) + 1_601);
    expect(none).toEqual({ items: [], next: '601' });
    expect(await find([3], 601)).toMatchObject({ items: [{ number: 3 }], next: null });
    expect(Math.max(...perTurn)).toBe(500);
  });
});

async function add(history: History<Entry>, entries: number, kept: number): Promise<void> {
  await journal.commit(() => {
    if (history.last(other) === 0) history.add(other, { text: 'of another' }, kept);
    for (let entry = 0; entry < entries; entry += 1) history.add(action, { text: 'x' }, kept);
  });
}

function numbers(history: History<Entry>): number[] {
  journal.refresh();
  return [...history.all(action)].map(({ number }) => number);
}
