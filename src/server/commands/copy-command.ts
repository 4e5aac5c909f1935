import type { Command } from 'commander';
import { OperatorError } from '../../core/errors.ts';
import type { Comparison } from '../../maintenance/copy/comparison.ts';
import type { CopyOptions } from '../../maintenance/copy/copy.ts';
import { type Config, loadConfig } from '../configuration/config.ts';
import { enteredByOthers } from '../entered-by-others.ts';
import { collectLocations, isUrl, printTransferred, transfer } from './transfer-command.ts';

interface Flags {
  from: string[];
  to: string[];
  config?: string;
  json?: boolean;
}

/** Stands for the databases of the configuration, whose URLs have passwords that the process list would show. */
const configured = 'store';

/** Adds `fleetpost copy`: offline, between a data folder and databases, when a fleet outgrows one machine, or back. */
export function addCopyCommand(program: Command): void {
  program
    .command('copy')
    .description('copy a stopped store between a data folder and PostgreSQL')
    .requiredOption(
      '--from <location>',
      'source: a data folder; `store` for the databases of the configuration; or postgres://…, repeated for each database',
      collectLocations,
    )
    .requiredOption(
      '--to <location>',
      'target, likewise; empty, or begun by an earlier try of the same copy',
      collectLocations,
    )
    .option('--config <file>', 'configuration file, JSON')
    .option('--json', 'print one JSON document')
    .action(async ({ from, to, config, json = false }: Flags) => {
      const { values } = loadConfig(config, process.env, {});
      const locations = [locationsOf(from, values), locationsOf(to, values)] as const;
      const { answer, seconds } = await transfer('Copying', (progress) =>
        copy(...locations, values, progress),
      );
      const said =
        answer === undefined
          ? 'An earlier try had copied and compared everything. Its leftovers are removed.'
          : `Copied in ${seconds} s. Both sides were compared and are equal.`;
      printTransferred(
        (answer?.kinds ?? []).map(({ name, folder }) => [name, folder] as const),
        json,
        said,
      );
    });
}

/** @throws OperatorError */
function locationsOf(named: readonly string[], { store }: Config): readonly string[] {
  if (named.length !== 1 || named[0] !== configured) return named;
  if (store.engine === 'postgres') return store.shards;
  throw new OperatorError(
    'The store of this configuration is in the data folder. Name a configuration with databases, or their URLs.',
  );
}

/** @throws OperatorError */
async function copy(
  from: readonly string[],
  to: readonly string[],
  { mapBytesMax, diskFreeBytesMin, logLevel }: Config,
  progress: CopyOptions['progress'],
): Promise<Comparison | undefined> {
  const isToFolder = from.every(isUrl);
  const [folder, ...more] = isToFolder ? to : from;
  const urls = isToFolder ? from : to;
  if (folder === undefined || more.length > 0 || isUrl(folder) || !urls.every(isUrl)) {
    throw new OperatorError(
      'Name a data folder on one side, and postgres://… on the other, once for each shard.',
    );
  }
  const { shardOf } = await import('../../domain/placement.ts');
  const { storeLayouts } = await import('../../maintenance/environments.ts');
  const { createLog } = await import('../../core/telemetry/log.ts');
  const options: CopyOptions = {
    folder,
    urls,
    stores: storeLayouts,
    shardOf: shardOf,
    mapBytesMax,
    diskFreeBytesMin,
    progress,
    log: createLog(logLevel),
  };
  const openness = isToFolder ? enteredByOthers(folder) : undefined;
  if (openness !== undefined) options.log.warn(openness);
  if (isToFolder) return (await import('../../maintenance/copy/copy-to-folder.ts')).copyToDataFolder(options);
  return (await import('../../maintenance/copy/copy-to-databases.ts')).copyToDatabases(options);
}
