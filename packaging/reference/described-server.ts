import type { AdminServerOptions } from '../../src/admin-api/server/server.ts';
import { loadConfig, runningConfig } from '../../src/server/configuration/config.ts';
import type { OperatorParts } from '../../src/server/operator-parts.ts';
import { featureMetrics, operatorRoutes } from '../../src/server/operator-routes.ts';

/**
 * Parts that routes and metrics read while they are declared, so that they can be described without a server: a request or a
 * scrape would find nothing else here.
 */
export function describedServer(): AdminServerOptions {
  const config = runningConfig(loadConfig(undefined, {}, {}).values);
  const parts = {
    config,
    shards: { all: [] },
    traces: {},
    backups: { completedAtMs: 0 },
  } as unknown as OperatorParts;
  return { ...parts, routes: operatorRoutes(parts), figures: parts, metrics: featureMetrics(parts) };
}
