import type { Log } from '../core/telemetry/log.ts';
import type { WorkerPool } from '../threads/worker-pool.ts';
import { certificateFiles, checkCertificate } from './certificates/certificate.ts';
import type { CertificateRenewal } from './certificates/certificate-renewal.ts';
import {
  type Config,
  type ConfigKey,
  configKeys,
  type EffectiveConfig,
  reloadableKeys,
} from './configuration/config.ts';

/** Difference of a reloaded configuration. */
interface ConfigChange {
  /** Values that apply at once. */
  values: Partial<Config>;
  /** Changed keys that need a restart. */
  fixedKeys: readonly ConfigKey[];
}

function changeOf(before: Config, after: Config): ConfigChange {
  const changed = configKeys.filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]));
  const reloadable = changed.filter((key) => reloadableKeys.includes(key));
  return {
    values: Object.fromEntries(reloadable.map((key) => [key, after[key]])),
    fixedKeys: changed.filter((key) => !reloadable.includes(key)),
  };
}

export interface ReloadOptions {
  /** Shared by the whole thread, so it is changed in place. */
  config: Config;
  /** Actual shard count, whatever the configuration says. */
  shards: number;
  tlsFolder: string;
  cluster: WorkerPool;
  certificate: CertificateRenewal;
  log: Log;
}

/**
 * Reloads the configuration on SIGHUP: applies all changes that are possible at run time, or none if anything is invalid.
 * Returns the changed keys.
 */
export async function reload(load: () => EffectiveConfig, options: ReloadOptions): Promise<string[]> {
  const { config, shards, tlsFolder, cluster, certificate, log } = options;
  let changed: string[];
  try {
    const { values, sources } = load();
    checkCertificate(certificateFiles({ ...values, listen: config.listen }, tlsFolder));
    // If no shard count is configured, that of the folder applies.
    const wanted = sources.shards === 'default' ? { ...values, shards } : values;
    const change = changeOf({ ...config, shards }, wanted);
    Object.assign(config, change.values);
    if (change.values.logLevel !== undefined) log.level = change.values.logLevel;
    await cluster.configure(change.values);
    changed = Object.keys(change.values);
    log.info({ changed: change.values }, 'configuration reloaded');
    if (change.fixedKeys.length > 0) {
      log.warn({ keys: change.fixedKeys }, 'changed keys need a restart');
    }
  } catch (error) {
    log.error({ reason: (error as Error).message }, 'configuration reload failed; nothing changed');
    return [];
  }
  await certificate.poll();
  return changed;
}
