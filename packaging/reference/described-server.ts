import type { AdminContext } from '../../src/admin-api/request/context.ts';
import { loadConfig, runningConfig } from '../../src/server/configuration/config.ts';

/**
 * Context that routes and metrics read while they are declared, so that they can be described without a server: a
 * request or a scrape would find nothing else of a context here.
 */
export function describedServer(): AdminContext {
  const config = runningConfig(loadConfig(undefined, {}, {}).values);
  return {
    config,
    shards: { all: [] },
    traces: {},
    backups: { completedAtMs: 0 },
  } as unknown as AdminContext;
}
