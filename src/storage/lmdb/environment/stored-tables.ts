import type { Database } from 'lmdb';

/** A table of one environment: binary keys, binary values, ordered by key bytes. */
export type Table = Database<Buffer, Buffer>;

/** A row of one of them, as it is left; without a value it is removed. */
export interface StoredChange {
  name: string;
  key: Buffer;
  value: Buffer | undefined;
}

/**
 * Tables that the main thread reads in place and changes in transactions: an environment of its own, or the mirror of
 * what the nodes of a database share.
 */
export interface StoredTables {
  table(name: string): Table;
  /** Before reading outside `write`. */
  refresh(): void;
  /** One transaction, durable when it settles. @throws StoreError, ApiError unavailable: then nothing is stored. */
  write(apply: () => void): Promise<void>;
  /**
   * Runs `change` while nobody else changes anything here: what it reads is what there is, and it writes once at
   * most. @throws what `change` throws, ApiError unavailable.
   */
  exclusively<T>(change: () => Promise<T>): Promise<T>;
  hasRoom(): boolean;
  hasDiskToGrow(): boolean;
  hasDisk(): boolean;
  close(): Promise<void>;
}
