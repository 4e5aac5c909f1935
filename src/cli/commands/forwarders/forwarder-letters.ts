import type { Command } from 'commander';
import { OperatorError } from '../../../core/errors.ts';
import { connect } from '../../connection.ts';
import { fleetCommand, type ListOptions, withListOptions } from '../../options.ts';
import { fields, listText, print } from '../../output.ts';
import { type ForwarderFleetOptions, forwarderUrl } from './forwarder-path.ts';

interface DeadLetter {
  record_id: string;
  device_id: string;
  kind: string;
  schema: string;
  refused_at: string;
  replayed: boolean;
  reason: string;
}

async function listLetters(
  name: string,
  record: string | undefined,
  options: ForwarderFleetOptions & ListOptions,
): Promise<void> {
  const client = connect(options);
  if (record === undefined) {
    const letters = await client.list<DeadLetter>(
      forwarderUrl(options, name, 'dead-letters'),
      options,
      {},
      100,
    );
    const columns = ['record_id', 'refused_at', 'device_id', 'kind', 'schema', 'replayed', 'reason'] as const;
    print(options, letters, listText(letters, columns, 'This forwarder has no dead letters.'));
    return;
  }
  // As it came: parsing would change large numbers in the payload (D11).
  const text = await client.requestText('GET', forwarderUrl(options, name, 'dead-letters', record));
  process.stdout.write(`${options.json ? text : fields(JSON.parse(text) as DeadLetter)}\n`);
}

/** A command on one dead letter, or on all of a forwarder: not on all because an id was forgotten. */
function letterCommand(
  group: Command,
  verb: string,
  description: string,
  act: (path: string, options: ForwarderFleetOptions) => Promise<void>,
): void {
  fleetCommand(group, `${verb} <name>`, description)
    .argument('[record]', 'its id')
    .option('--all', 'all dead letters')
    .action(
      async (
        name: string,
        record: string | undefined,
        options: ForwarderFleetOptions & { all?: boolean },
      ) => {
        if ((record === undefined) === (options.all === undefined)) {
          throw new OperatorError('Name one dead letter by its record id, or all of them by --all.');
        }
        const rest = record === undefined ? [] : [record];
        await act(forwarderUrl(options, name, 'dead-letters', ...rest), options);
      },
    );
}

/** `forwarder dead-letters|replay|drop`. */
export function addForwarderLetterCommands(group: Command): void {
  withListOptions(
    fleetCommand(
      group,
      'dead-letters <name>',
      'list the records that were refused, or show one with its payload',
    ),
  )
    .argument('[record]', 'its id')
    .action(listLetters);

  letterCommand(group, 'replay', 'send dead letters once more', async (path, options) => {
    const answer = await connect(options).request<{ replayed: number }>('POST', `${path}/replay`);
    print(options, answer, `Dead letters that are sent once more: ${answer.replayed}.`);
  });

  letterCommand(group, 'drop', 'throw dead letters away', async (path, options) => {
    const answer = await connect(options).request<{ dropped: number }>('DELETE', path);
    print(options, answer, `Dead letters that are thrown away: ${answer.dropped}.`);
  });
}
