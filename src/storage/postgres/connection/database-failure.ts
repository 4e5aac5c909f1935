/**
 * A failure of the database or its connection, identified by its code alone: error texts of both repeat users, hosts
 * and values, which must not get into logs.
 */
export class DatabaseFailure extends Error {
  /** SQLSTATE, the code of a failed connection, or `CONNECTION`. */
  readonly code: string;
  /** Its transaction may have been committed: the connection was lost behind the COMMIT. */
  readonly isOutcomeUnknown: boolean;

  constructor(code: string, isOutcomeUnknown = false) {
    super(`Database query failed: ${code}.`);
    this.name = 'DatabaseFailure';
    this.code = code;
    this.isOutcomeUnknown = isOutcomeUnknown;
  }

  /** A serialization conflict, or a deadlock that the engine has ended. */
  get isConflict(): boolean {
    return this.code === '40001' || this.code === '40P01';
  }

  /**
   * True if the connection is unusable: broken or about to be (08, 57), or its server takes no writes (25), as a
   * former primary does not.
   */
  get isLost(): boolean {
    return !/^[0-9A-Z]{5}$/.test(this.code) || /^(08|25|57)/.test(this.code);
  }
}

/** Converts whatever the library throws. */
export function failureOf(error: unknown): DatabaseFailure {
  if (error instanceof DatabaseFailure) return error;
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  return new DatabaseFailure(
    typeof code === 'string' && /^[0-9A-Z_]{3,60}$/.test(code) ? code : 'CONNECTION',
  );
}

/** True if the transaction should be retried. */
export function isConflict(error: unknown): boolean {
  return error instanceof DatabaseFailure && error.isConflict;
}
