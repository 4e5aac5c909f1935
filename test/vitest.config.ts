import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { LongestFirst } from './longest-first.ts';

/**
 * Suffixes of test files, in front of `.test.ts`: they alone decide which projects a file runs in.
 *
 * - `.unit`: threads and folders of its own, and no server.
 * - `.store`: a store opened in this process: each engine behind `Shard`, or what the engine of databases does beyond.
 * - none: a server.
 * - `.rules`: a server; what must hold with either engine and with any number of shards.
 * - `.folder`: a server and its data folder: damage, disk, threads, kills and moves. With databases there is none.
 * - `.nodes`: several servers on databases.
 *
 * And when: each time, or, as the second suffix or the only one, by `npm run test:all`:
 *
 * - `.slow`: takes long by its nature.
 * - `.system`: needs more of the machine than Node and this folder: root, or programs.
 */
const filesOf = (...suffixes: string[]): string[] =>
  suffixes.map((suffix) => `test/**/+([^.])${suffix}.test.ts`);

type Project = NonNullable<TestProjectInlineConfiguration['test']>;

const ofStores: Project = {
  globalSetup: ['test/harness/setup/postgres-server.ts'],
  // Each test has a store of its own and nothing else: so the files share what they import.
  isolate: false,
};

/** They share a process, what they import, and a server, which each makes fleets of its own on. */
const onFolder = (shards: number): Project => ({ env: { SHARDS: String(shards) }, isolate: false });

const onDatabase: Project = {
  globalSetup: ['test/harness/setup/postgres-server.ts'],
  env: { ENGINE: 'postgres', SHARDS: '1' },
};

/**
 * They wait for more than half of their time, for what two processors do meanwhile: three files for each. Vitest runs
 * projects that differ in that one after another, in this order.
 */
const ofLong: Project = { maxWorkers: 6, sequence: { groupOrder: 1 } };

/** What `npm run test:postgres` runs on a database besides that which there is time for with each change. */
const isWhole = process.env.POSTGRES_TESTS === 'all';

export const projects: Project[] = [
  // Each file has folders and threads of its own and nothing else: so they share what they import.
  { name: 'units', include: filesOf('.unit'), isolate: false },
  { name: 'contract', include: filesOf('.store'), ...ofStores },
  { name: 'shards-3', include: filesOf('', '.rules'), ...onFolder(3) },
  { name: 'postgres', include: filesOf('.nodes', ...(isWhole ? ['', '.rules'] : [])), ...onDatabase },

  { name: 'all-contract', include: filesOf('.store.slow'), ...ofStores, ...ofLong },
  // The smallest server there is.
  { name: 'all-shards-1', include: filesOf('.rules', '.rules.slow'), ...onFolder(1), ...ofLong },
  // They start a server hundreds of times, each of whose threads takes a fifth of a second of CPU.
  {
    name: 'all-shards-2',
    include: filesOf(
      ...['.slow', '.rules.slow', '.folder.slow'],
      ...['.system', '.folder.system', '.store.system'],
    ),
    ...onFolder(2),
    ...ofLong,
  },
  {
    name: 'all-postgres',
    include: filesOf('.nodes.slow', '.rules.slow', ...(isWhole ? ['.slow', '.system'] : [])),
    ...onDatabase,
    ...ofLong,
  },
];

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    pool: 'forks',
    globalSetup: [
      // First: programs that it copies must stay on disk, because memory may forbid to run them.
      'test/harness/setup/postgres-program.ts',
      'test/harness/setup/temporary-folders.ts',
      'test/harness/setup/certificate.ts',
    ],
    setupFiles: ['test/harness/setup/answers.ts'],
    sequence: { sequencer: LongestFirst },
    // Two more than the two cores of the smallest machine: some of what they do is to wait.
    maxWorkers: 4,
    // For what hangs: what only takes long, on a machine that does other things, is no failure.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    projects: projects.map((test) => ({ extends: true, test })),
  },
});
