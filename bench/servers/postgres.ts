import { existsSync } from 'node:fs';
import { Postgres } from '../../test/harness/postgres/postgres.ts';
import { installedProgram } from '../../test/harness/postgres/postgres-program.ts';

/** Promise of an answer that waits for a commit there: fsync and synchronous_commit are on. */
export const synchronousCommit = 'synchronous commit';

/** Names what is missing on this machine, and how to get it. */
export function missingPostgres(): string | undefined {
  if (existsSync(installedProgram('postgres'))) return undefined;
  return 'There is no PostgreSQL of Debian: run bench/install-peers.sh.';
}

/** Starts Debian's, as others would use it, on an empty folder. */
export function startPostgres(): Promise<Postgres> {
  return Postgres.start(['fsync=on'], 5432, installedProgram);
}
