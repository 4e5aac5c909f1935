import type { Command } from 'commander';
import { OperatorError } from '../../core/errors.ts';
import { uuidBytesLength } from '../../core/uuid.ts';
import { cursorTables } from '../../features/records/cursor.ts';
import { loadConfig } from '../configuration/config.ts';
import { collectLocations, isUrl, printTransferred, transfer } from './transfer-command.ts';

interface Flags {
  from: string[];
  to: string[];
  leaveLog?: boolean;
  giveUp?: boolean;
  json?: boolean;
}

/**
 * Returns the databases of a configuration file, so that the process list shows no passwords; or those named by URL.
 * @throws OperatorError
 */
function databasesOf(locations: readonly string[]): readonly string[] {
  if (locations.every(isUrl)) return locations;
  const [file, ...more] = locations;
  // Without the environment, which would be the same for both sides.
  const { store } = loadConfig(file, {}, {}).values;
  if (more.length === 0 && store.engine === 'postgres') return store.shards;
  throw new OperatorError(
    'Name one configuration file whose store is in databases, or postgres://… for each database.',
  );
}

/** Tables with the cursors of log readers, whose keys begin with 16 bytes of the reader. */
const logCursors = [
  ...['control', 'actions'].flatMap((store) => cursorTables.map((name) => ({ store, name }))),
  { store: 'actions', name: 'behind' },
].map((table) => ({ ...table, shardAt: uuidBytesLength }));

/** Adds `fleetpost rebalance`: offline, to change the number of databases of the store. */
export function addRebalanceCommand(program: Command): void {
  program
    .command('rebalance')
    .description('reshard the devices when databases are added to the store or removed')
    .requiredOption(
      '--from <location>',
      'a configuration file with the current store.shards; or postgres://…, repeated for each database, in order',
      collectLocations,
    )
    .requiredOption(
      '--to <location>',
      'the new list, likewise: with databases added or removed at its end',
      collectLocations,
    )
    .option(
      '--leave-log',
      'remove a database although its log still has records, which are no longer delivered',
    )
    .option('--give-up', 'roll back a change that has not removed anything yet')
    .option('--json', 'print one JSON document')
    .action(async ({ from, to, leaveLog = false, giveUp, json = false }: Flags) => {
      const { shardOf } = await import('../../domain/placement.ts');
      const { createLog } = await import('../../core/telemetry/log.ts');
      const { abortReshard, reshardDatabases } = await import(
        '../../maintenance/reshard-databases/reshard-databases.ts'
      );
      const lists = { from: databasesOf(from), to: databasesOf(to) };
      const options = { ...lists, shardOf, logCursors, leaveLog, log: createLog('warn') };
      if (giveUp) {
        await transfer('Moving', (progress) => abortReshard({ ...options, progress }));
        return printTransferred([], json, 'Rolled back. Nothing has changed.');
      }
      const { answer } = await transfer('Moving', (progress) => reshardDatabases({ ...options, progress }));
      const said =
        answer === undefined
          ? 'Nothing to move: the databases already match.'
          : 'Moved. Configure the new list on every node before it starts.';
      printTransferred(answer ?? [], json, said);
    });
}
