import { type Config, type ConfigKey, configKeys, reloadableKeys } from './config.ts';

/** What a configuration that was read again asks to be otherwise. */
export interface ConfigChange {
  /** Can be had at once. */
  values: Partial<Config>;
  /** Need a restart. */
  fixedKeys: readonly ConfigKey[];
}

export function changeOf(before: Config, after: Config): ConfigChange {
  const changed = configKeys.filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]));
  const reloadable = changed.filter((key) => reloadableKeys.includes(key));
  return {
    values: Object.fromEntries(reloadable.map((key) => [key, after[key]])),
    fixedKeys: changed.filter((key) => !reloadable.includes(key)),
  };
}
