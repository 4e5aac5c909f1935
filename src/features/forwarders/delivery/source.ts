import type { StoredRecord } from '../../../domain/records/record.ts';

/** Records in order, to be given back or acknowledged as a whole. */
export interface SourceBatch {
  /** At least one. */
  records: readonly StoredRecord[];
  /** They never come again. Durable when it settles. @throws ApiError unavailable: then they do. */
  acknowledge(): Promise<void>;
  /** They are the next ones again. */
  release(): void;
}

/** Where the records of one lane come from, one batch after another. */
export interface Source {
  /** Waits for records, that many at most; undefined when the signal came first. */
  fetch(recordsMax: number, signal: AbortSignal): Promise<SourceBatch | undefined>;
}
