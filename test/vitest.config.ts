import { defineConfig } from 'vitest/config';

/** Everything that talks to a server runs twice: with one shard and with three. */
const onServer = (shards: number) => ({
  extends: true as const,
  test: {
    name: `shards-${shards}`,
    include: ['test/{spec,robustness,properties,operation}/**/*.test.ts'],
    env: { SHARDS: String(shards) },
  },
});

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      { extends: true, test: { name: 'units', include: ['test/units/**/*.test.ts'] } },
      onServer(1),
      onServer(3),
    ],
  },
});
