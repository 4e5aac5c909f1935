import {
  type Config,
  loadConfig,
  type RunningConfig,
  runningConfig,
} from '../../../src/server/configuration/config.ts';

/** The default configuration of a running server, with some values of its own. */
export function configWith(changed: Partial<Config> = {}): RunningConfig {
  return runningConfig({ ...loadConfig(undefined, {}, {}).values, ...changed });
}
