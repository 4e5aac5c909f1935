import type { StoredRecord } from '../../../domain/records/record.ts';

/** Result of one attempt at a batch. `reason` is our own text and never contains any of the receiver's. */
export type Outcome =
  | { result: 'delivered' }
  /** Some record can never be delivered as it is. */
  | { result: 'refused'; reason: string }
  /** To be retried. */
  | {
      result: 'failed';
      reason: string;
      retryAfterMs?: number;
      /** The destination answered with this error and no Retry-After: one of the records may be the cause. */
      isAnswer?: true;
    };

export interface SendOptions {
  /** Makes a destination that drops duplicates accept records that it accepted before. */
  isAgain?: boolean;
}

/** Sends batches to one destination. */
export interface Sender {
  /** Settles within the forwarder's timeout, or soon after the signal. Never throws. */
  send(records: readonly StoredRecord[], signal: AbortSignal, how?: SendOptions): Promise<Outcome>;
  close(): Promise<void>;
}
