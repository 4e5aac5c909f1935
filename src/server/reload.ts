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

/** What a configuration that was read again asks to be otherwise. */
interface ConfigChange {
  /** Can be had at once. */
  values: Partial<Config>;
  /** Need a restart. */
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
  /** In use everywhere on this thread: changed in place. */
  config: Config;
  /** Of the data folder, whatever the configuration says. */
  shards: number;
  tlsFolder: string;
  cluster: WorkerPool;
  certificate: CertificateRenewal;
  log: Log;
}

/**
 * SIGHUP: takes of the configuration what can change at run time, all of it or, where anything is wrong, nothing.
 * Answers the keys that have changed.
 */
export async function reload(load: () => EffectiveConfig, options: ReloadOptions): Promise<string[]> {
  const { config, shards, tlsFolder, cluster, certificate, log } = options;
  let changed: string[];
  try {
    const { values, sources } = load();
    checkCertificate(certificateFiles({ ...values, listen: config.listen }, tlsFolder));
    // Where no number is configured, the folder has it.
    const wanted = sources.shards === 'default' ? { ...values, shards } : values;
    const change = changeOf({ ...config, shards }, wanted);
    Object.assign(config, change.values);
    if (change.values.logLevel !== undefined) log.level = change.values.logLevel;
    await cluster.configure(change.values);
    changed = Object.keys(change.values);
    log.info({ changed: change.values }, 'the configuration was read again');
    if (change.fixedKeys.length > 0) {
      log.warn({ keys: change.fixedKeys }, 'these keys change with a restart only');
    }
  } catch (error) {
    log.error({ reason: (error as Error).message }, 'the configuration was not taken; nothing has changed');
    return [];
  }
  await certificate.look();
  return changed;
}
