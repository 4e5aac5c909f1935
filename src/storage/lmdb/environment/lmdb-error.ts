import { StoreError } from '../../tables/store-error.ts';

/** LMDB's error codes for damaged pages: MDB_CORRUPTED and MDB_PAGE_NOTFOUND. */
const damageCodes: readonly unknown[] = [-30796, -30797];

/** True if LMDB threw this because of a damaged page. */
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
  if (typeof code !== 'number') return error;
  return new StoreError(`LMDB: ${(error as Error).message} (${code})`, isDamage(error));
}
