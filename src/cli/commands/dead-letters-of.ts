import type { Command } from 'commander';
import type { ListColumns } from '../../contract/columns/column.ts';
import { below, type ItemAt, type Path, pathTo } from '../../contract/routes/path.ts';
import { OperatorError } from '../../core/errors.ts';
import { type BulkOptions, isConfirmed, selectListed, withConfirmation } from '../confirmation.ts';
import { connect } from '../connection.ts';
import { type FleetOptions, fleetCommand, type ListOptions, withListOptions } from '../options.ts';
import { fields, listText, print } from '../output.ts';

type AllLetters =
  | '/fleets/{fleet_id}/actions/{name}/dead-letters'
  | '/fleets/{fleet_id}/forwarders/{name}/dead-letters';
type OneLetter =
  | '/fleets/{fleet_id}/actions/{name}/dead-letters/{run}'
  | '/fleets/{fleet_id}/forwarders/{name}/dead-letters/{record_id}';

/** The dead letters of a resource, as its commands need them. */
export interface DeadLettersOf<All extends AllLetters> {
  /** `an action`. */
  of: string;
  path: All;
  /** The argument that names a letter, and how it is checked. */
  argument: { name: string; description: string; parse?(text: string): unknown };
  columns: ListColumns<ItemAt<All>>;
  nameOf(letter: ItemAt<All>): string | number;
  /** The fields of one that people are shown. */
  shownOf?(letter: ItemAt<All>): object;
  /** Letters per request. */
  pageMax: number;
}

/** Adds `dead-letters|replay|drop`. */
export function addDeadLetterCommandsOf<All extends AllLetters>(
  group: Command,
  {
    of,
    path,
    argument,
    columns,
    nameOf,
    shownOf = (letter) => letter as object,
    pageMax,
  }: DeadLettersOf<All>,
): void {
  const pathOfAll = ({ fleet: fleet_id }: FleetOptions, name: string): Path<All> =>
    pathTo<AllLetters>(path, { fleet_id, name }) as Path<All>;
  const pathOfOne = (options: FleetOptions, name: string, id: unknown): Path<OneLetter> =>
    `${pathOfAll(options, name)}/${encodeURIComponent(String(id))}` as Path<OneLetter>;
  const withArgument = (command: Command): Command =>
    command.argument(`[${argument.name}]`, argument.description, argument.parse ?? String);

  withArgument(
    withListOptions(
      fleetCommand(
        group,
        'dead-letters <name>',
        `list the dead letters of ${of}, or show one with its payload`,
      ),
    ),
  ).action(async (name: string, id: unknown, options: FleetOptions & ListOptions) => {
    const client = connect(options);
    if (id === undefined) {
      const letters = await client.list(pathOfAll(options, name), options, undefined, pageMax);
      print(options, letters, listText(letters, columns, 'There are no dead letters.'));
      return;
    }
    // Printed as received: parsing would change large numbers in the payload (D11).
    const text = await client.requestText('GET', pathOfOne(options, name, id));
    const shown = options.json ? text : fields(shownOf(JSON.parse(text) as ItemAt<All>));
    process.stdout.write(`${shown}\n`);
  });

  /** Acts on one letter or, only with `--all` and confirmed, on all: a missing id must not mean all. */
  const onLetters = (
    verb: string,
    description: string,
    act: (path: Path<AllLetters | OneLetter>, options: FleetOptions) => Promise<void>,
  ): void => {
    const command = withArgument(fleetCommand(group, `${verb} <name>`, description));
    withConfirmation(command.option('--all', 'all dead letters')).action(
      async (name: string, id: unknown, options: FleetOptions & BulkOptions & { all?: boolean }) => {
        if ((id === undefined) === (options.all === undefined)) {
          throw new OperatorError(`Name one dead letter (${argument.description}), or all of them by --all.`);
        }
        if (id !== undefined && options.dryRun) throw new OperatorError('--dry-run goes with --all.');
        if (id !== undefined) return act(pathOfOne(options, name, id), options);
        const all = pathOfAll(options, name);
        const select = () =>
          selectListed(connect(options).pages(all, undefined, { pageMax }), (one) => String(nameOf(one)));
        if (await isConfirmed([verb, 'dead letters'], options, select)) await act(all, options);
      },
    );
  };
  onLetters('replay', 'replay dead letters', async (path, options) => {
    const answer = await connect(options).request('POST', below(path, '/replay', {}));
    print(options, answer, `Replaying ${answer.replayed} dead letters.`);
  });
  onLetters('drop', 'drop dead letters', async (path, options) => {
    const answer = await connect(options).request('DELETE', path);
    print(options, answer, `Dropped ${answer.dropped} dead letters.`);
  });
}
