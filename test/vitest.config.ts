import { defineConfig } from 'vitest/config';

const ofDevices = ['test/{spec,robustness,properties}/**/*.test.ts'];
/** Of processes, files and commands, which are the same whatever the number of shards. */
const ofOperators = ['test/operation/**/*.test.ts'];

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
    // More than cores: half of the time is spent waiting for timers and for servers to start.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      { extends: true, test: { name: 'units', include: ['test/units/**/*.test.ts'] } },
      onServer(1, ofDevices),
      onServer(3, [...ofDevices, ...ofOperators]),
    ],
  },
});
