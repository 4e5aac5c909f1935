import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

/** Tests that need more of the machine than Node and this folder: root, or programs. */
const ofSystem = 'test/**/*.system.test.ts';
/** Tests that `npm test` leaves to `npm run test:all`: those, and what takes long by its nature. */
const ofAll = 'test/**/*.{slow,system}.test.ts';
const ofQuick = 'test/**/!(*.slow|*.system).test.ts';
/** Tests of units: threads and folders of their own, and no server. */
const ofUnits = 'test/**/*.unit*.test.ts';
/** Rules of devices, mail and records, with one shard and with several; of HTTP it makes no difference. */
const ofState = [
  'test/{domain,features}/**/*.rules*.test.ts',
  'test/device-api/{events,idempotency,mailbox}.rules.test.ts',
];
/** Tests that every engine behind `Shard` must pass, and those of what the engine of databases does beyond. */
const ofStores = 'test/storage/{contract,postgres}/**/*.test.ts';
/** Tests of several servers on one store. */
const ofNodes = ['test/nodes/{nodes,jobs,hold,upgrade}.*test.ts'];
/**
 * Tests of the data folder itself: what becomes of it, damage in it, and what its disk, threads, kills and first start
 * do.
 */
const ofFolders = [
  'test/{maintenance,storage/lmdb,features/backups}/**/*.test.ts',
  'test/server/{health,parent,read-only-disk,start}.*test.ts',
];
/** Tests of trouble with databases: each has servers of its own, whatever the engine of the project is. */
const ofDatabases = ['test/nodes/{faults,cut-off}.*test.ts'];
/** Tests that say most of an engine, in the time that there is for each change; the rest by `npm run test:postgres`. */
const ofDatabasesMost = ['test/domain/*.rules*.test.ts', ...ofNodes];
const isWhole = process.env.POSTGRES_TESTS === 'all';

/** Timeout of tests that start servers again and again: a machine that others use needs some seconds for each. */
const ofLong = { testTimeout: 180_000 };

type Project = NonNullable<TestProjectInlineConfiguration['test']>;

/** A project twice: what there is time for with each change, and what not. The suffix of a file decides. */
const inTiers = (
  test: Project & { exclude: string[] },
  ofSlow: Project = {},
): TestProjectInlineConfiguration[] => [
  { extends: true, test: { ...test, exclude: [...test.exclude, ofAll] } },
  {
    extends: true,
    test: { ...test, ...ofLong, name: `all-${test.name}`, exclude: [...test.exclude, ofQuick], ...ofSlow },
  },
];

const onServer = {
  exclude: [ofUnits, ofStores, ...ofNodes, ofSystem],
  // They share a process, what they import, and a server, which each makes fleets of its own on.
  isolate: false,
};

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    pool: 'forks',
    globalSetup: [
      // First: programs that it copies must stay on disk, because memory may forbid to run them.
      'test/harness/postgres-program-setup.ts',
      'test/harness/temporary-setup.ts',
      'test/harness/certificate-setup.ts',
    ],
    setupFiles: ['test/harness/answers-setup.ts'],
    // Two more than the two cores of the smallest machine: much of what they do is to wait.
    maxWorkers: 4,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      // Each file has folders and threads of its own and nothing else: so they share what they import.
      ...inTiers({ name: 'units', include: [ofUnits], exclude: [], isolate: false }),
      // Tests that every engine behind the `Shard` seam must pass.
      ...inTiers({
        name: 'contract',
        include: [ofStores],
        exclude: [ofUnits, ofSystem],
        globalSetup: ['test/storage/contract/postgres-setup.ts'],
        // Each test has a store of its own and nothing else: so the files share what they import.
        isolate: false,
        // For what an engine does by itself, some moments later.
        expect: { poll: { timeout: 30_000, interval: 20 } },
      }),
      ...inTiers({
        name: 'postgres',
        include: isWhole ? ['test/**/*.test.ts'] : ofDatabasesMost,
        exclude: [ofUnits, ofStores, ...ofFolders, ...ofDatabases, ...(isWhole ? [] : [ofSystem])],
        globalSetup: ['test/storage/contract/postgres-setup.ts'],
        env: { ENGINE: 'postgres', SHARDS: '1' },
      }),
      ...inTiers(
        { ...onServer, name: 'shards-3', include: ['test/**/*.test.ts'], env: { SHARDS: '3' } },
        // They start a server hundreds of times, each of whose threads takes a fifth of a second of CPU.
        { name: 'all-shards-2', env: { SHARDS: '2' } },
      ),
      // The same with one shard, which is the smallest server there is.
      {
        extends: true,
        test: { ...onServer, ...ofLong, name: 'all-shards-1', include: ofState, env: { SHARDS: '1' } },
      },
      {
        extends: true,
        test: { name: 'all-system', include: [ofSystem], env: { SHARDS: '2' }, isolate: false },
      },
    ],
  },
});
