import { useEffect, useRef, useState } from 'preact/hooks';
import type { ListDocument } from '../../contract/document.ts';
import { type HeldItems, heldItems, type ItemsOf } from './held-items.ts';

export interface HeldList<Item> extends HeldItems<Item> {
  /** Shows what has come since. */
  show(): void;
  /** Shows what the next reading has. */
  showNext(): void;
  /** Says that something was done with these: they may have gone. */
  settle(items: readonly Item[]): void;
}

const none: ReadonlySet<string> = new Set();

/** Holds a list that is read again and again as it was read first; another `key` is another list. */
export function useHeldList<Item>(
  key: string,
  latest: ListDocument<Item> | undefined,
  itemsOf: ItemsOf<Item>,
): HeldList<Item> {
  const [state, setState] = useState<{ key: string; held: ListDocument<Item>; settled: typeof none }>();
  const isNextShown = useRef(false);
  const own = state?.key === key && !isNextShown.current ? state : undefined;
  const hold = (held: ListDocument<Item> | undefined): void => {
    if (held !== undefined) setState({ key, held, settled: none });
  };
  useEffect(() => {
    if (latest === undefined || own !== undefined) return;
    isNextShown.current = false;
    hold(latest);
  }, [key, latest]);
  const held = own === undefined || own.held.items.length === 0 ? latest : own.held;
  const shown =
    held === undefined || latest === undefined
      ? { items: [], fresh: 0 }
      : heldItems(held, latest, own?.settled ?? none, itemsOf);
  return {
    ...shown,
    show: () => hold(latest),
    showNext() {
      isNextShown.current = true;
    },
    settle(items) {
      if (own === undefined) return;
      setState({ ...own, settled: new Set([...own.settled, ...items.map(itemsOf.keyOf)]) });
    },
  };
}
