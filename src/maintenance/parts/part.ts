import type { Row } from '../../storage/postgres/connection/database.ts';
import type { DatabaseTable } from '../../storage/postgres/schema/table.ts';

/** Rows that one record of a data folder stands for, and its key there. */
export interface FoundRow<R extends Row> {
  key: Buffer;
  rows: R[];
}

/**
 * One kind of record, of one shard or store: how rows of PostgreSQL, which are what is compared, are read from the
 * environment in a data folder that holds them, and written to it.
 */
export interface Part<R extends Row = Row> {
  /** One of its kind among all parts of an environment. */
  name: string;
  table: DatabaseTable<R>;
  /** Of which rows it is, where the table has others too. */
  where?: string;
  /** What stands in the place of a column when it is read, of the table `t`. */
  columns?: Partial<Record<keyof R & string, string>>;
  /** What tells two records apart; all columns where it is absent. */
  compared?(row: R): unknown[];
  /** What follows from other parts is compared and not copied. */
  isDerived?: boolean;
  /** Behind a key, or from the front on, in the order of the keys. @throws OperatorError for a damaged record. */
  read(after: Buffer | undefined): Iterable<FoundRow<R>>;
  /** Inside a write transaction: the same rows twice are there once. */
  write(rows: readonly R[]): void;
}

/** A range of keys. */
export function behind(after: Buffer | undefined): { start?: Buffer; exclusiveStart?: boolean } {
  return after === undefined ? {} : { start: after, exclusiveStart: true };
}

/** The environment of one shard, as its parts see it. */
export interface ShardSide<Tables> {
  tables: Tables;
  /** What makes a time of its life one that a person can read (shard-clock.ts). */
  jumpsMs: number;
}
