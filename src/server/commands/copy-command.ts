import type { Command } from 'commander';
import { OperatorError } from '../../core/errors.ts';
import type { Comparison } from '../../maintenance/copy/comparison.ts';
import type { CopyOptions } from '../../maintenance/copy/copy.ts';
import { type Config, loadConfig } from '../configuration/config.ts';
import { enteredByOthers } from '../entered-by-others.ts';
import { collectPlaces, isUrl, printTransferred, transfer } from './transfer-command.ts';

interface Flags {
  from: string[];
  to: string[];
  config?: string;
  json?: boolean;
}

/** In place of the URLs of databases, which have passwords in them that the list of processes would show. */
const configured = 'store';

/** `fleetpost copy`: offline, between a data folder and databases, when a fleet outgrows one machine, and back. */
export function addCopyCommand(program: Command): void {
  program
    .command('copy')
    .description('copy a stopped store between a data folder and PostgreSQL')
    .requiredOption(
      '--from <place>',
      'a data folder, or `store`: the databases of the configuration; or postgres://…, again for each further one',
      collectPlaces,
    )
    .requiredOption(
      '--to <place>',
      'what it goes into, likewise; empty, or begun with by the same copy',
      collectPlaces,
    )
    .option('--config <file>', 'configuration file, JSON')
    .option('--json', 'print one JSON document')
    .action(async ({ from, to, config, json = false }: Flags) => {
      const { values } = loadConfig(config, process.env, {});
      const places = [placesOf(from, values), placesOf(to, values)] as const;
      const { answer, seconds } = await transfer('Copying', (progress) => copy(...places, values, progress));
      const said =
        answer === undefined
          ? 'An earlier try had copied and compared everything; what it left besides is gone now.'
          : `Copied in ${seconds} s. Both sides were read again and are the same.`;
      printTransferred(
        (answer?.kinds ?? []).map(({ name, folder }) => [name, folder] as const),
        json,
        said,
      );
    });
}

/** @throws OperatorError */
function placesOf(named: readonly string[], { store }: Config): readonly string[] {
  if (named.length !== 1 || named[0] !== configured) return named;
  if (store.engine === 'postgres') return store.shards;
  throw new OperatorError(
    'The store of this configuration is in the data folder: name a configuration with databases, or their URLs.',
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
    placeOf: shardOf,
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
