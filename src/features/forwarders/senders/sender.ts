import type { StoredRecord } from '../../../domain/records/record.ts';

/** How one attempt at a batch ended. `reason` is a sentence of ours: nothing that the other side wrote is in it. */
export type Outcome =
  | { result: 'delivered' }
  /** As they are they can never be delivered, or at least one of them cannot. */
  | { result: 'refused'; reason: string }
  /** Not now: to be tried again. */
  | {
      result: 'failed';
      reason: string;
      retryAfterMs?: number;
      /** The destination was there and said so of this, without asking for time: one of the records may be the cause. */
      isAnswer?: true;
    };

export interface SendOptions {
  /** They were taken before: a destination that drops what comes twice is to take them once more. */
  isAgain?: boolean;
}

/** The way to one destination. */
export interface Sender {
  /** Ends within the forwarder's timeout, or soon after the signal. Never throws. */
  send(records: readonly StoredRecord[], signal: AbortSignal, how?: SendOptions): Promise<Outcome>;
  close(): Promise<void>;
}
