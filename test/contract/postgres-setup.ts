import type { TestProject } from 'vitest/node';
import { Postgres } from '../harness/postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Of the PostgreSQL server that runs for as long as the tests do. */
    postgresFolder: string;
  }
}

/** One server for all files, which ends with them: each test has a database of its own. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const postgres = await Postgres.start();
  project.provide('postgresFolder', postgres.folder);
  // For the server processes of tests.
  process.env.POSTGRES_FOLDER = postgres.folder;
  return () => postgres[Symbol.asyncDispose]();
}
