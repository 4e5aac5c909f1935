import { errorAnswers } from '../../contract/document.ts';
import { serverDocument } from '../../contract/server.ts';
import { programVersion } from '../../core/telemetry/version.ts';
import type { AdminApp, AdminContext, Handler } from '../request/context.ts';
import { routesOf } from '../request/route.ts';
import { timeTextOf } from '../request/times.ts';

const showing = {
  summary: 'Show the server: version, certificates, configuration',
  description: 'Each value of the configuration in use, with its source. Passwords in addresses are masked.',
  response: { 200: serverDocument, ...errorAnswers },
};

const showServer = ({
  certificates,
  configuration,
  shards,
  programVersions,
}: AdminContext): Handler<typeof showing> => {
  const version = programVersion();
  const startedAtMs = Date.now() - process.uptime() * 1_000;
  return async () => ({
    version,
    program_versions: [...(await programVersions())],
    node_version: process.version,
    started_at: timeTextOf(startedAtMs),
    shards: shards.all.length,
    certificates: certificates.map(({ listener, endMs }) => ({ listener, expires_at: timeTextOf(endMs) })),
    configuration: configuration.list().map(({ isReloadable, isPending, ...key }) => ({
      ...key,
      reloadable: isReloadable,
      pending: isPending,
    })),
  });
};

/** Adds `/server`. */
export function addServerRoute(app: AdminApp, context: AdminContext): void {
  routesOf(app)('GET', '/server', 'admin', showing, showServer(context));
}
