import { defineConfig } from 'vitest/config';

/** What needs more of the machine than Node and this folder: `npm run test:all` runs these, and says what is missing. */
const ofSystem = 'test/**/*.system.test.ts';
/** Of the rules and of what must hold: with one shard and with several. */
const ofRules = ['test/{spec,properties}/**/*.test.ts'];
/** Of processes, threads, files, commands, connections, receivers and trouble: with several shards, which have more. */
const ofOneServer = ['test/{fleet,operation,robustness}/**/*.test.ts'];
/** Of several servers on one store. */
const ofNodes = ['test/operation/{nodes,jobs}.test.ts'];
/**
 * Of the data folder itself: of what becomes of it, of damage in it, and of what its disk, threads, kills and first start
 * do. The storm of kills is another one for databases.
 */
const ofFolders = [
  'test/operation/{action-moves,consumer-moves,shard-count,shard-move-kills}.test.ts',
  'test/operation/{backup,damage,health,parent,start}.test.ts',
  'test/robustness/{clock.system,crash,full-disk.system,poison}.test.ts',
  'test/operation/{start,read-only-disk}.system.test.ts',
];
/** Of trouble with databases: each has servers of its own, whatever the engine of the project is. */
const ofDatabases = ['test/robustness/postgres-{faults,cut-off}.test.ts'];
/** Of whole stores that are moved, and killed meanwhile: minutes. */
const ofTransfer = ['test/engine/{copy,copy-kills,rebalance}.test.ts'];
/** What says most of an engine, in the time that there is for each change; the rest by `npm run test:postgres`. */
const ofDatabasesMost = ['test/properties/**/*.test.ts', 'test/operation/nodes.test.ts'];
const isWhole = process.env.POSTGRES_TESTS === 'all';

const onServer = (shards: number, include: string[]) => ({
  extends: true as const,
  test: {
    name: `shards-${shards}`,
    include,
    exclude: [...ofNodes, ofSystem],
    env: { SHARDS: String(shards) },
    // Each file has servers of its own and nothing else: so they share a process, and what they import.
    isolate: false,
  },
});

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    pool: 'forks',
    globalSetup: ['test/harness/certificate-setup.ts', 'test/harness/postgres-program-setup.ts'],
    // One more than the two cores of the smallest machine: much of what they do is to wait.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      { extends: true, test: { name: 'units', include: ['test/units/**/*.test.ts'] } },
      // What every engine behind the `Shard` seam must pass.
      {
        extends: true,
        test: {
          name: 'contract',
          include: ['test/{contract,engine}/**/*.test.ts'],
          exclude: isWhole ? [ofSystem] : [...ofTransfer, ofSystem],
          globalSetup: ['test/contract/postgres-setup.ts'],
          // Each test has a store of its own and nothing else: so the files share what they import.
          isolate: false,
          // For what an engine does by itself, some moments later.
          expect: { poll: { timeout: 30_000, interval: 20 } },
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: isWhole ? [...ofRules, ...ofOneServer] : ofDatabasesMost,
          exclude: [...ofFolders, ...ofDatabases, ...(isWhole ? [] : [ofSystem])],
          globalSetup: ['test/contract/postgres-setup.ts'],
          env: { ENGINE: 'postgres', SHARDS: '1' },
        },
      },
      onServer(1, ofRules),
      onServer(3, [...ofRules, ...ofOneServer]),
      {
        extends: true,
        test: { name: 'system', include: [ofSystem], env: { SHARDS: '3' } },
      },
    ],
  },
});
