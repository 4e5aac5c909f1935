import { unavailable } from '../../core/errors.ts';

/** The store refused: the disk is full or failing, or a page is damaged. Nothing was stored. */
export class StoreError extends Error {
  /** A required page is damaged: this write fails again and again, while everything else works. */
  readonly isDamage: boolean;

  constructor(msg: string, isDamage: boolean) {
    super(msg);
    this.name = 'StoreError';
    this.isDamage = isDamage;
  }
}

/** Turns refusals of the store into 503; other errors stay. */
export function refusalOf(error: unknown, store: string): unknown {
  if (!(error instanceof StoreError)) return error;
  return unavailable(`${store} cannot be written: its disk is full or failing. Retry later.`, 5);
}
