import { unavailable } from '../../../core/errors.ts';

/** LMDB's numbers for what a damaged page makes it say: MDB_CORRUPTED and MDB_PAGE_NOTFOUND. */
const damageCodes: readonly unknown[] = [-30796, -30797];

/** LMDB refused: for want of disk, because the disk fails, or because a page is damaged. Nothing was stored. */
export class StoreError extends Error {
  /** A page that had to be read is damaged: this fails again and again, and everything else goes on. */
  readonly isDamage: boolean;

  constructor(cause: Error & { code: number }) {
    super(`LMDB: ${cause.message} (${cause.code})`);
    this.name = 'StoreError';
    this.isDamage = isDamage(cause);
  }
}

/** For a caller of ours: 503 in place of what LMDB refused, every other error as it is. */
export function refusalOf(error: unknown, store: string): unknown {
  if (!(error instanceof StoreError)) return error;
  return unavailable(`${store} cannot be written now: its disk is full or failing.`, 5);
}

/** Whether LMDB has thrown this at a read since a page is damaged. */
export function isDamage(error: unknown): boolean {
  return damageCodes.includes((error as { code?: unknown }).code);
}

/**
 * What LMDB said, where it was LMDB: its errors carry a number, and a commit that failed carries a promise that
 * is rejected with one, which has to be taken, or else it ends the process as a rejection that nobody handles.
 */
export async function causeOf(error: unknown): Promise<unknown> {
  const { commitError, code } = error as { commitError?: Promise<never>; code?: unknown };
  if (commitError !== undefined) return commitError.catch(causeOf);
  return typeof code === 'number' ? new StoreError(error as Error & { code: number }) : error;
}
