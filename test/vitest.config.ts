import { defineConfig } from 'vitest/config';

const ofServers = 'test/{spec,robustness,properties,fleet}/**/*.test.ts';
/** Of processes, threads, files, commands and connections, which are the same whatever the number of shards. */
const ofOneServer = [
  'test/operation/**/*.test.ts',
  'test/robustness/{clock,connections,fragments,garbage,isolation,poison,shutdown}.test.ts',
  'test/robustness/{siege,slow,smuggling,stalls,tls}.test.ts',
];

const onServer = (shards: number, include: string[], exclude: string[]) => ({
  extends: true as const,
  test: {
    name: `shards-${shards}`,
    include,
    exclude,
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
      onServer(1, [ofServers], ofOneServer),
      onServer(3, [ofServers, ...ofOneServer], []),
    ],
  },
});
