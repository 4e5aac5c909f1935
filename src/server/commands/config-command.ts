import type { Command } from 'commander';
import { withoutPasswords } from '../../storage/config.ts';
import { configDescription, configKeys, environmentName } from '../configuration/config.ts';
import { effectiveConfig, withConfigFlags } from './serve-command.ts';

/** `fleetpost config`: every key with its value, where that came from, and what it is. */
export function addConfigCommand(program: Command): void {
  withConfigFlags(program.command('config').description('print the effective configuration'))
    .option('--json', 'print one JSON document')
    .action((flags) => {
      const { values, sources } = effectiveConfig(flags);
      const items = configKeys.map((key) => ({
        key,
        value: key === 'store' ? withoutPasswords(values.store) : values[key],
        source: sources[key],
        environment: environmentName(key),
        description: configDescription(key),
      }));
      if (flags.json) return console.log(JSON.stringify({ items, next: null }));
      for (const { key, value, source, description } of items) {
        console.log(`${key} = ${JSON.stringify(value)}  (${source})\n    ${description}`);
      }
    });
}
