import { useEffect, useState } from 'preact/hooks';
import { useKeys } from '../page/keys.ts';

/** The row that `j` and `k` move along, and a way to put it elsewhere. It begins before the first one if asked to. */
export function useRowCursor(rows: number, beginning: 0 | -1 = 0): [at: number, put: (at: number) => void] {
  const [cursor, setCursor] = useState<number>(beginning);
  const within = (at: number): number => Math.max(Math.min(at, rows - 1), beginning);
  const at = within(cursor);
  useKeys({ j: () => setCursor(within(at + 1)), k: () => setCursor(Math.max(within(at - 1), 0)) });
  useEffect(() => {
    document.querySelector('tr[data-cursor]')?.scrollIntoView({ block: 'nearest' });
  }, [at]);
  return [at, setCursor];
}
