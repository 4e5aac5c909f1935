import type { ComponentChildren } from 'preact';
import { href, path, search } from '../page/router.ts';

export interface PagesProps {
  /** Position where the next page begins; null: this is the last one. */
  next: string | null;
  /** The words for the beginning and for what follows. */
  words?: readonly [string, string];
  /** Shown beside the links, about this page. */
  children?: ComponentChildren;
}

/** Words for a list that is read newest first. */
export const byAge = ['Newest', 'Older'] as const;

/** Ways to the other pages of the list at this address; where a page begins is `after` in it. */
export function Pages({ next, words: [first, further] = ['First page', 'Next page'], children }: PagesProps) {
  const isPaged = search.value.has('after');
  if (!isPaged && next === null && children === undefined) return null;
  const target = (after: string): string => href(path.value, { ...Object.fromEntries(search.value), after });
  return (
    <nav class="inline below" aria-label="Pages">
      {isPaged && (
        <a class="button" href={target('')}>
          {first}
        </a>
      )}
      {next !== null && (
        <a class="button" href={target(next)}>
          {further}
        </a>
      )}
      {children}
    </nav>
  );
}
