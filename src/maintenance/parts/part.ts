import type { Table } from '../../storage/lmdb/environment/stored-tables.ts';
import type { Row } from '../../storage/postgres/connection/database.ts';
import type { DatabaseTable } from '../../storage/postgres/schema/table.ts';

/** A record of a data folder. */
interface FolderRecord {
  key: Buffer;
  value: Buffer;
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
  /** The table of the data folder whose records it reads. */
  source: Table;
  /** The rows that represent one record. @throws Error for a damaged one */
  rowsOf(record: FolderRecord): R[];
  /** Writes inside a write transaction; idempotent. */
  write(rows: readonly R[]): void;
}

/** The environment of one shard, for its parts. */
export interface ShardSide<Tables> {
  tables: Tables;
  /** Added to a time of the shard's clock, gives wall-clock time (shard-clock.ts). */
  jumpsMs: number;
}
