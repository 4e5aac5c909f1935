import { defineConfig } from 'vitest/config';

/** Of the rules and of what must hold: with one shard and with several. */
const ofRules = ['test/{spec,properties}/**/*.test.ts', 'test/robustness/crash.test.ts'];
/** Of processes, threads, files, commands, connections, receivers and trouble: with several shards, which have more. */
const ofOneServer = ['test/{fleet,operation,robustness}/**/*.test.ts'];

const onServer = (shards: number, include: string[]) => ({
  extends: true as const,
  test: {
    name: `shards-${shards}`,
    include,
    env: { SHARDS: String(shards) },
  },
});

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    pool: 'forks',
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
          globalSetup: ['test/contract/postgres-setup.ts'],
          // Each test has a store of its own and nothing else: so the files share what they import.
          isolate: false,
          // For what an engine does by itself, some moments later.
          expect: { poll: { timeout: 30_000, interval: 20 } },
        },
      },
      onServer(1, ofRules),
      onServer(3, [...ofRules, ...ofOneServer]),
    ],
  },
});
