import type { Database } from 'lmdb';

/** A table of an environment: binary keys and values, in byte order of the keys. */
export type Table = Database<Buffer, Buffer>;

/** A changed row; without a value it is removed. */
export interface StoredChange {
  name: string;
  key: Buffer;
  value: Buffer | undefined;
}

/**
 * Tables that the main thread reads in place and changes in transactions: an environment of its own, or a replica of
 * what the nodes on a database share.
 */
export interface StoredTables {
  table(name: string): Table;
  /** Call before reading outside `write`. */
  refresh(): void;
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
