import type { Row } from '../../storage/postgres/connection/database.ts';
import type { DatabaseTable } from '../../storage/postgres/schema/table.ts';

/** The rows that represent one record of a data folder, and its key there. */
export interface FoundRow<R extends Row> {
  key: Buffer;
  rows: R[];
}

/**
 * One kind of record of one shard or store: how its PostgreSQL rows, which are what is compared, are read from and
 * written to an environment of a data folder.
 */
export interface Part<R extends Row = Row> {
  /** Unique among the parts of an environment. */
  name: string;
  table: DatabaseTable<R>;
  /** SQL condition, if the table has other rows too. */
  where?: string;
  /** SQL that replaces a column when it is read, of the table `t`. */
  columns?: Partial<Record<keyof R & string, string>>;
  /** Values to compare; all columns if absent. */
  compared?(row: R): unknown[];
  /** Derived from other parts: compared, not copied. */
  isDerived?: boolean;
  /** Reads in key order, from behind a key or from the front. @throws OperatorError for a damaged record */
  read(after: Buffer | undefined): Iterable<FoundRow<R>>;
  /** Writes inside a write transaction; idempotent. */
  write(rows: readonly R[]): void;
}

/** Key range behind `after`. */
export function behind(after: Buffer | undefined): { start?: Buffer; exclusiveStart?: boolean } {
  return after === undefined ? {} : { start: after, exclusiveStart: true };
}

/** The environment of one shard, for its parts. */
export interface ShardSide<Tables> {
  tables: Tables;
  /** Added to a time of the shard's clock, gives wall-clock time (shard-clock.ts). */
  jumpsMs: number;
}
