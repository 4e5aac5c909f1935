/** Rows from `start` on, before `end`; an absent bound is open. In reverse the last comes first. */
export interface RowRange {
  start?: Buffer;
  end?: Buffer;
  reverse?: boolean;
  limit?: number;
}

/** The rows of a table: binary keys and values, in byte order of the keys. Changed inside `TableStore.write` only. */
export interface Rows {
  get(key: Buffer): Buffer | undefined;
  has(key: Buffer): boolean;
  /** Copies both buffers. */
  put(key: Buffer, value: Buffer): void;
  /** Returns whether it was there. */
  delete(key: Buffer): boolean;
  keys(range?: RowRange): Iterable<Buffer>;
  entries(range?: RowRange): Iterable<{ key: Buffer; value: Buffer }>;
  count(range?: RowRange): number;
}

/** A changed row; without a value it is removed. */
export interface StoredChange {
  name: string;
  key: Buffer;
  value: Buffer | undefined;
}

/**
 * Tables that the main thread reads in place and changes in transactions: those of an environment, or in memory those
 * that the nodes on a database share.
 */
export interface TableStore {
  rows(table: string): Rows;
  /** Call before reading outside `write`. */
  refresh(): void;
  /** Settles when all that any node had committed before the call can be read. @throws ApiError unavailable */
  catchUp(): Promise<void>;
  /** Runs one transaction, durable when settled. @throws StoreError, ApiError unavailable: then nothing is stored. */
  write(apply: () => void): Promise<void>;
  /**
   * Runs `change` exclusively: its reads are current, and it may write once. @throws what `change` throws, ApiError
   * unavailable.
   */
  exclusively<T>(change: () => Promise<T>): Promise<T>;
  hasMapSpace(): boolean;
  hasDiskToGrow(): boolean;
  hasDisk(): boolean;
  close(): Promise<void>;
}
