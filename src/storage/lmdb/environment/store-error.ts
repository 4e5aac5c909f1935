import { unavailable } from '../../../core/errors.ts';

/** LMDB's error codes for damaged pages: MDB_CORRUPTED and MDB_PAGE_NOTFOUND. */
const damageCodes: readonly unknown[] = [-30796, -30797];

/** LMDB refused: the disk is full or failing, or a page is damaged. Nothing was stored. */
export class StoreError extends Error {
  /** A required page is damaged: this write fails again and again, while everything else works. */
  readonly isDamage: boolean;

  constructor(cause: Error & { code: number }) {
    super(`LMDB: ${cause.message} (${cause.code})`);
    this.name = 'StoreError';
    this.isDamage = isDamage(cause);
  }
}

/** Turns LMDB's refusals into 503; other errors stay. */
export function refusalOf(error: unknown, store: string): unknown {
  if (!(error instanceof StoreError)) return error;
  return unavailable(`${store} cannot be written: its disk is full or failing. Retry later.`, 5);
}

/** Whether LMDB threw this because of a damaged page. */
export function isDamage(error: unknown): boolean {
  return damageCodes.includes((error as { code?: unknown }).code);
}

/**
 * Extracts LMDB's error: it has a number, and a failed commit also has a rejected promise, which must be awaited, or
 * else it is an unhandled rejection.
 */
export async function causeOf(error: unknown): Promise<unknown> {
  const { commitError, code } = error as { commitError?: Promise<never>; code?: unknown };
  if (commitError !== undefined) return commitError.catch(causeOf);
  return typeof code === 'number' ? new StoreError(error as Error & { code: number }) : error;
}
