import type { DatabasePath } from '../../harness/postgres/database-path.ts';

/** PostgreSQL on several servers, of which one is primary and another its synchronous standby. */
export interface DatabaseCluster extends AsyncDisposable {
  /** A node's way to whoever is primary. */
  path(): Promise<DatabasePath>;
  /** A new, empty database. Answers its name. */
  create(): Promise<string>;
  /** One statement to the primary of now. */
  ask<T>(text: string): Promise<T[]>;
  /** kill -9 of all of the primary, for good. Settles when somebody else is to take over, by itself or by us. */
  failOver(): Promise<void>;
  /** kill -9 of the primary's server, which comes back. Settles when it is to do so, by itself or by us. */
  crashPrimary(): Promise<void>;
  /** One of the two stands still, until `thaw`. */
  freezePrimary(): Promise<void>;
  freezeStandby(): Promise<void>;
  thaw(): void;
  /** Settles when commits wait for a standby again: then the next failure loses nothing. */
  healed(): Promise<void>;
}
