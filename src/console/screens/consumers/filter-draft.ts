import type { ConsumerDocument } from '../../../contract/consumer.ts';

export type FilterKind = ConsumerDocument['kinds'][number];

/** Which records a reader gets, as it is written in a form. */
export interface FilterDraft {
  /** None: all. */
  kinds: readonly FilterKind[];
  /** Separated by commas; empty: all. */
  schemas: string;
}

export function filterDraftOf(filter: {
  kinds?: readonly FilterKind[];
  schemas?: readonly string[];
}): FilterDraft {
  return { kinds: filter.kinds ?? [], schemas: (filter.schemas ?? []).join(', ') };
}
