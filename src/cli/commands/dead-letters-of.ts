import type { Command } from 'commander';
import type { DroppedDocument, ReplayedDocument } from '../../contract/dead-letter.ts';
import { OperatorError } from '../../core/errors.ts';
import { type BulkOptions, isConfirmed, selectListed, withConfirmation } from '../confirmation.ts';
import { connect } from '../connection.ts';
import { type FleetOptions, fleetCommand, type ListOptions, withListOptions } from '../options.ts';
import { fields, listText, print } from '../output.ts';

/** The dead letters of a resource, as its commands need them. */
export interface DeadLettersOf<Letter, Shown extends object> {
  /** `an action`, and the path below it. */
  of: string;
  url(options: FleetOptions, name: string, ...rest: string[]): string;
  /** The argument that names a letter, and how it is checked. */
  argument: { name: string; description: string; parse?(text: string): unknown };
  columns: readonly (keyof Shown & string)[];
  /** As shown to people; `inList`: in one line. */
  shownOf(letter: Letter, inList: boolean): Shown;
  /** Letters per request. */
  pageMax: number;
}

/** Adds `dead-letters|replay|drop`. */
export function addDeadLetterCommandsOf<Letter, Shown extends object>(
  group: Command,
  { of, url, argument, columns, shownOf, pageMax }: DeadLettersOf<Letter, Shown>,
): void {
  // The first column names a letter.
  const idOf = (shown: Shown): string => String(columns[0] === undefined ? '' : shown[columns[0]]);
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
    const path = url(options, name, 'dead-letters', ...(id === undefined ? [] : [String(id)]));
    if (id === undefined) {
      const letters = await client.listAs<Letter>(path, options, {}, pageMax);
      const shown = { ...letters, items: letters.items.map((letter) => shownOf(letter, true)) };
      print(options, letters, listText(shown, columns, 'There are no dead letters.'));
      return;
    }
    // Printed as received: parsing would change large numbers in the payload (D11).
    const text = await client.requestText('GET', path);
    const shown = options.json ? text : fields(shownOf(JSON.parse(text) as Letter, false));
    process.stdout.write(`${shown}\n`);
  });

  /** Acts on one letter or, only with `--all` and confirmed, on all: a missing id must not mean all. */
  const onLetters = (
    verb: string,
    description: string,
    act: (path: string, options: FleetOptions) => Promise<void>,
  ): void => {
    const command = withArgument(fleetCommand(group, `${verb} <name>`, description));
    withConfirmation(command.option('--all', 'all dead letters')).action(
      async (name: string, id: unknown, options: FleetOptions & BulkOptions & { all?: boolean }) => {
        if ((id === undefined) === (options.all === undefined)) {
          throw new OperatorError(`Name one dead letter (${argument.description}), or all of them by --all.`);
        }
        const path = url(options, name, 'dead-letters', ...(id === undefined ? [] : [String(id)]));
        if (id !== undefined && options.dryRun) throw new OperatorError('--dry-run goes with --all.');
        const select = () =>
          selectListed<Letter>(connect(options), path, {}, (one) => idOf(shownOf(one, true)), pageMax);
        if (id === undefined && !(await isConfirmed([verb, 'dead letters'], options, select))) return;
        await act(path, options);
      },
    );
  };
  onLetters('replay', 'replay dead letters', async (path, options) => {
    const answer = await connect(options).requestAs<ReplayedDocument>('POST', `${path}/replay`);
    print(options, answer, `Replaying ${answer.replayed} dead letters.`);
  });
  onLetters('drop', 'drop dead letters', async (path, options) => {
    const answer = await connect(options).requestAs<DroppedDocument>('DELETE', path);
    print(options, answer, `Dropped ${answer.dropped} dead letters.`);
  });
}
