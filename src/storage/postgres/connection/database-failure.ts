/**
 * What the database, or the way to it, did not do: known by its code alone, since the texts of both repeat users,
 * hosts and values, which are for no log.
 */
export class DatabaseFailure extends Error {
  /** SQLSTATE, the code of a failed connection, or `CONNECTION`. */
  readonly code: string;

  constructor(code: string) {
    super(`The database did not do what it was asked: ${code}.`);
    this.name = 'DatabaseFailure';
    this.code = code;
  }

  /** A conflict that the engine asks to be tried again, or a deadlock that it has ended. */
  get isConflict(): boolean {
    return this.code === '40001' || this.code === '40P01';
  }

  /**
   * Whether the connection is of no more use: it is broken or about to be (08, 57), or the server takes no writes
   * (25), as one that was the primary and is so no more.
   */
  get isLost(): boolean {
    return !/^[0-9A-Z]{5}$/.test(this.code) || /^(08|25|57)/.test(this.code);
  }
}

/** Of anything that the library throws. */
export function failureOf(error: unknown): DatabaseFailure {
  if (error instanceof DatabaseFailure) return error;
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  return new DatabaseFailure(
    typeof code === 'string' && /^[0-9A-Z_]{3,60}$/.test(code) ? code : 'CONNECTION',
  );
}

/** Whether the engine asks for the same transaction once more. */
export function isConflict(error: unknown): boolean {
  return error instanceof DatabaseFailure && error.isConflict;
}
