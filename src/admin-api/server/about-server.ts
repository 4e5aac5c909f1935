import { errorAnswers } from '../../contract/document.ts';
import { serverDocument } from '../../contract/server.ts';
import { programVersion } from '../../core/telemetry/version.ts';
import type { AdminApp, AllShards, Handler } from '../request/context.ts';
import { routesOf } from '../request/route.ts';
import { timeTextOf } from '../request/times.ts';

/** A key of the configuration in use. */
export interface ConfiguredKey {
  key: string;
  /** Passwords are masked. */
  value: string | number | boolean | Record<string, unknown>;
  source: 'default' | 'file' | 'environment' | 'flag';
  environment: string;
  description: string;
  isReloadable: boolean;
  /** True if it was given another value that waits for a restart. */
  isPending: boolean;
}

interface Needs {
  /** One for each listener in HTTPS. */
  certificates: readonly { readonly listener: string; readonly endMs: number }[];
  /** The whole configuration, to be shown. */
  configuration: { list(): ConfiguredKey[] };
  shards: AllShards;
  /** Versions of the program on all nodes. */
  programVersions(): Promise<readonly string[]>;
}

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
}: Needs): Handler<typeof showing> => {
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
export function addServerRoute(app: AdminApp, context: Needs): void {
  routesOf(app)('GET', '/server', 'admin', showing, showServer(context));
}
