import type { Command } from 'commander';
import { OperatorError } from '../../core/errors.ts';
import { uuidBytesLength } from '../../core/uuid.ts';
import { loadConfig } from '../configuration/config.ts';
import { collectPlaces, isUrl, printTransferred, transfer } from './transfer-command.ts';

interface Flags {
  from: string[];
  to: string[];
  leaveLog?: boolean;
  giveUp?: boolean;
  json?: boolean;
}

/**
 * The databases of a configuration file, whose passwords the list of processes does not show; or those that are named.
 * @throws OperatorError
 */
function databasesOf(places: readonly string[]): readonly string[] {
  if (places.every(isUrl)) return places;
  const [file, ...more] = places;
  // The environment would say the same for both sides.
  const { store } = loadConfig(file, {}, {}).values;
  if (more.length === 0 && store.engine === 'postgres') return store.shards;
  throw new OperatorError(
    'Name one configuration file whose store is in databases, or postgres://… for each database.',
  );
}

/** How far somebody has come in which log, in the tables of those who read logs (consume/tables.ts, dispatch/tables.ts). */
const logPlaces = [
  { store: 'control', name: 'consumerPositions' },
  { store: 'control', name: 'consumerDone' },
  { store: 'actions', name: 'positions' },
  { store: 'actions', name: 'done' },
].map((table) => ({ ...table, shardAt: uuidBytesLength }));

/** `fleetpost rebalance`: offline, when the store gets another number of databases. */
export function addRebalanceCommand(program: Command): void {
  program
    .command('rebalance')
    .description('move the devices that change place when databases are added to the store, or go')
    .requiredOption(
      '--from <place>',
      'a configuration file with store.shards as it is; or postgres://…, again for each further one, in order',
      collectPlaces,
    )
    .requiredOption(
      '--to <place>',
      'likewise, as it is to be: with more databases at its end, or fewer',
      collectPlaces,
    )
    .option('--leave-log', 'let a database go whose log still has records: nobody is given them any more')
    .option('--give-up', 'end a change that has taken nothing away yet; all is as it was before')
    .option('--json', 'print one JSON document')
    .action(async ({ from, to, leaveLog = false, giveUp, json = false }: Flags) => {
      const { shardOf } = await import('../../domain/placement.ts');
      const { createLog } = await import('../../core/telemetry/log.ts');
      const { giveUpRebalance, rebalance } = await import('../../maintenance/reshard-databases/rebalance.ts');
      const lists = { from: databasesOf(from), to: databasesOf(to) };
      const options = { ...lists, placeOf: shardOf, logPlaces, leaveLog, log: createLog('warn') };
      if (giveUp) {
        await transfer('Moving', (progress) => giveUpRebalance({ ...options, progress }));
        return printTransferred([], json, 'All is as it was before.');
      }
      const { answer } = await transfer('Moving', (progress) => rebalance({ ...options, progress }));
      const said =
        answer === undefined
          ? 'There is nothing to move: the databases are so already.'
          : 'Moved. Configure the new list on every node before it starts.';
      printTransferred(answer ?? [], json, said);
    });
}
