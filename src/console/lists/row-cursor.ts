import { useEffect, useState } from 'preact/hooks';
import { recallCursor, rememberCursor } from '../page/history-entry.ts';
import { useKeys } from '../page/keys.ts';

/**
 * The row that `j` and `k` move along, and a way to put it elsewhere. It begins where it was when the screen was left,
 * or else at the first one, or before that if asked to.
 */
export function useRowCursor(rows: number, beginning: 0 | -1 = 0): [at: number, put: (at: number) => void] {
  const [cursor, setCursor] = useState<number>(() => recallCursor() ?? beginning);
  const within = (at: number): number => Math.max(Math.min(at, rows - 1), beginning);
  const at = within(cursor);
  // From the one before each press: two of a held key may come between two drawings.
  const move = (by: 1 | -1): void =>
    setCursor((before) => Math.max(within(within(before) + by), by === -1 ? 0 : beginning));
  useKeys({ j: () => move(1), k: () => move(-1) });
  useEffect(() => {
    if (rows > 0) rememberCursor(at);
    document.querySelector('tr[data-cursor]')?.scrollIntoView({ block: 'nearest' });
  }, [at]);
  return [at, setCursor];
}
