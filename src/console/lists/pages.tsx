import type { ComponentChildren } from 'preact';
import { href, path, search } from '../page/router.ts';

export interface PagesProps {
  /** Position where the next page begins; null: this is the last one. */
  next: string | null;
  /** The words for the beginning, for what follows, and for what came before. */
  words?: readonly [first: string, further: string, back?: string];
  /** Shown beside the links, about this page. */
  children?: ComponentChildren;
}

/** Words for a list that is read newest first. */
export const byAge = ['Newest', 'Older', 'Newer'] as const;

/** The page before each of those that were come to by its link, by their addresses: a position leads only onwards. */
const before = new Map<string, string>();
const beforeMax = 500;

function remember(page: string, previous: string): void {
  before.delete(page);
  before.set(page, previous);
  const [oldest] = before.keys();
  if (before.size > beforeMax && oldest !== undefined) before.delete(oldest);
}

/** Ways to the other pages of the list at this address; where a page begins is `after` in it. */
export function Pages({
  next,
  words: [first, further, back = 'Previous page'] = ['First page', 'Next page'],
  children,
}: PagesProps) {
  const isPaged = search.value.has('after');
  if (!isPaged && next === null && children === undefined) return null;
  const target = (after: string): string => href(path.value, { ...Object.fromEntries(search.value), after });
  const own = target(search.value.get('after') ?? '');
  const previous = isPaged ? before.get(own) : undefined;
  return (
    <nav class="inline below" aria-label="Pages">
      {isPaged && (
        <a class="button" href={target('')}>
          {first}
        </a>
      )}
      {previous !== undefined && (
        <a class="button" href={previous}>
          {back}
        </a>
      )}
      {next !== null && (
        <a class="button" href={target(next)} onClick={() => remember(target(next), own)}>
          {further}
        </a>
      )}
      {children}
    </nav>
  );
}
