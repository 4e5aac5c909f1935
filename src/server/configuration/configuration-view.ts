import type { ConfiguredKey } from '../../admin-api/server/about-server.ts';
import { withoutPassword, withoutPasswords } from '../../storage/config.ts';
import {
  type Config,
  type ConfigKey,
  configDescription,
  configKeys,
  type EffectiveConfig,
  environmentName,
  isReloadable,
  type RunningConfig,
} from './config.ts';

/** The configuration of a running server as operators see it: each value with its source, and no password. */
export class ConfigurationView {
  readonly #config: RunningConfig;
  readonly #fixed: Config;
  #sources: EffectiveConfig['sources'];
  #pending: ReadonlySet<ConfigKey> = new Set();

  constructor({ values, sources }: EffectiveConfig, config: RunningConfig, shards: number) {
    this.#config = config;
    // If no shard count is configured, that of the folder applies.
    this.#fixed = { ...values, shards };
    this.#sources = sources;
  }

  /** Takes the sources of a reload, and the keys whose change waits for a restart. */
  reloaded(sources: EffectiveConfig['sources'], pending: readonly ConfigKey[]): void {
    const keys = configKeys.map((key) => [key, isReloadable(key) ? sources[key] : this.#sources[key]]);
    this.#sources = Object.fromEntries(keys) as EffectiveConfig['sources'];
    this.#pending = new Set(pending);
  }

  list(): ConfiguredKey[] {
    return configKeys.map((key) => ({
      key,
      value: this.#shown(key),
      source: this.#sources[key],
      environment: environmentName(key),
      description: configDescription(key),
      isReloadable: isReloadable(key),
      isPending: this.#pending.has(key),
    }));
  }

  #shown(key: ConfigKey): ConfiguredKey['value'] {
    if (key === 'store') return { ...withoutPasswords(this.#fixed.store) };
    const value = isReloadable(key) ? this.#config.settings.current[key] : this.#fixed[key];
    return typeof value === 'string' ? withoutPassword(value) : value;
  }
}
