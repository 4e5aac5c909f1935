import type { serverRoutes } from '../../contract/server.ts';
import { programVersion } from '../../core/telemetry/version.ts';
import type { Shards } from '../../domain/shard.ts';
import type { Handlers } from '../request/routes.ts';
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

interface Parts {
  /** One for each listener in HTTPS. */
  certificates: readonly { readonly listener: string; readonly endMs: number }[];
  /** The whole configuration, to be shown. */
  configuration: { list(): ConfiguredKey[] };
  shards: Shards;
  /** Versions of the program on all nodes. */
  programVersions(): Promise<readonly string[]>;
}

/** Handles `/server`. */
export function serverHandlers(parts: Parts): Handlers<typeof serverRoutes> {
  const { certificates, configuration, shards, programVersions } = parts;
  const version = programVersion();
  const startedAtMs = Date.now() - process.uptime() * 1_000;
  return {
    'GET /server': async () => ({
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
    }),
  };
}
