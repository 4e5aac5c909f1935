import type { Log } from '../core/telemetry/log.ts';
import type { WorkerPool } from '../threads/worker-pool.ts';
import { adminCertificateFiles, certificateFiles, checkConfigured } from './certificates/certificate.ts';
import type { CertificateRenewal } from './certificates/certificate-renewal.ts';
import {
  type Config,
  configKeys,
  type EffectiveConfig,
  isReloadable,
  type RunningConfig,
  runningConfig,
} from './configuration/config.ts';
import type { ConfigurationView } from './configuration/configuration-view.ts';

export interface ReloadOptions {
  config: RunningConfig;
  /** Actual shard count, whatever the configuration says. */
  shards: number;
  tlsFolder: string;
  cluster: WorkerPool;
  configuration: ConfigurationView;
  certificates: readonly CertificateRenewal[];
  log: Log;
}

/**
 * Reloads the configuration on SIGHUP: applies all changes that are possible at run time, or none if anything is invalid.
 * Returns the changed keys.
 */
export async function reload(load: () => EffectiveConfig, options: ReloadOptions): Promise<string[]> {
  const { config, shards, tlsFolder, cluster, configuration, certificates, log } = options;
  let changed: string[];
  try {
    const { values, sources } = load();
    checkCertificates(values, config, tlsFolder);
    // If no shard count is configured, that of the folder applies.
    const wanted: Config = sources.shards === 'default' ? { ...values, shards } : values;
    const before: Config = { ...config, ...config.settings.current, shards };
    const keys = configKeys.filter((key) => JSON.stringify(before[key]) !== JSON.stringify(wanted[key]));
    const change = Object.fromEntries(keys.filter(isReloadable).map((key) => [key, wanted[key]]));
    const fixedKeys = keys.filter((key) => !isReloadable(key));
    config.settings.change(change);
    // In the same turn: an operator who asks meanwhile would read new values with their old sources.
    configuration.reloaded(sources, fixedKeys);
    log.level = config.settings.current.logLevel;
    await cluster.configure(change);
    changed = Object.keys(change);
    log.info({ changed: change }, 'configuration reloaded');
    if (fixedKeys.length > 0) log.warn({ keys: fixedKeys }, 'changed keys need a restart');
  } catch (error) {
    log.error({ reason: (error as Error).message }, 'configuration reload failed; nothing changed');
    return [];
  }
  await Promise.all(certificates.map((certificate) => certificate.poll()));
  return changed;
}

/**
 * Checks the certificates that these values name, for the listeners and the ACME directory of the start.
 * @throws OperatorError if one cannot be used.
 */
function checkCertificates(values: Config, config: RunningConfig, tlsFolder: string): void {
  const { settings } = runningConfig(values);
  const wanted: RunningConfig = { ...config, settings };
  const adminFiles = adminCertificateFiles(wanted, tlsFolder);
  if (adminFiles !== undefined) checkConfigured(wanted, adminFiles);
  checkConfigured(wanted, certificateFiles(wanted, tlsFolder));
}
