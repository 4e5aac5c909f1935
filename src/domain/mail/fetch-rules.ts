import type { Fetches } from './mail.ts';

/** When a mail was first fetched (D13): the earliest wins, since a later report may have an earlier fetch. */
export function firstFetchMs(beforeMs: number | undefined, { firstMs }: Fetches): number {
  return beforeMs === undefined ? firstMs : Math.min(beforeMs, firstMs);
}
