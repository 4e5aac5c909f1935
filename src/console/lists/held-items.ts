import type { ListDocument } from '../../contract/document.ts';

/** How the items of a list are told apart, and when each came to it. */
export interface ItemsOf<Item> {
  keyOf(item: Item): string;
  /** As text that sorts like the time. */
  timeOf(item: Item): string;
}

/** A list as it is shown, and how many have come to it since. */
export interface HeldItems<Item> {
  /** The latest first. */
  items: readonly Item[];
  fresh: number;
}

/**
 * Joins a list as it was read first with how it is now: what has gone is left out, what came since is only counted, so
 * that no row moves under a pointer. A page that has a next one does not tell what has gone from it: `settled` does.
 */
export function heldItems<Item>(
  held: ListDocument<Item>,
  latest: ListDocument<Item>,
  settled: ReadonlySet<string>,
  { keyOf, timeOf }: ItemsOf<Item>,
): HeldItems<Item> {
  const known = new Set(held.items.map(keyOf));
  const there = new Set(latest.items.map(keyOf));
  const isGone = (key: string): boolean => !there.has(key) && (latest.next === null || settled.has(key));
  const until = held.items.map(timeOf).reduce((last, one) => (one > last ? one : last), '');
  const others = latest.items.filter((item) => !known.has(keyOf(item)));
  // From the next page, since those before them have gone.
  const movedUp = others.filter((item) => timeOf(item) <= until);
  const items = [...held.items.filter((item) => !isGone(keyOf(item))), ...movedUp];
  return {
    items: items.sort((a, b) => (timeOf(a) < timeOf(b) ? 1 : timeOf(a) > timeOf(b) ? -1 : 0)),
    fresh: others.length - movedUp.length,
  };
}
