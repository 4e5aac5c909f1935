import { type Command, Option } from 'commander';
import { deadLetterColumns } from '../../../contract/columns/mail.ts';
import type {
  DroppedLetterDocument,
  LetterFilter,
  ReplayedLetterDocument,
} from '../../../contract/dead-letter.ts';
import type { ListDocument } from '../../../contract/document.ts';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import type { AdminClient } from '../../admin-client.ts';
import { type BulkOptions, isConfirmed, selectListed, withConfirmation } from '../../confirmation.ts';
import { connect } from '../../connection.ts';
import { moment } from '../../moment.ts';
import { deviceIdOption, type FleetOptions, fleetCommand, option, several } from '../../options.ts';
import { print, printable, printRaw } from '../../output.ts';
import { listCommand, type OptionsOf, valuesOf, withOptions } from '../declared.ts';

type LetterOutcome = ReplayedLetterDocument | DroppedLetterDocument;

interface Verb {
  name: 'replay' | 'drop';
  done: string;
  description: string;
}

const verbs: readonly Verb[] = [
  {
    name: 'replay',
    done: 'replayed',
    description: 'replay a dead letter as a new mail, or with --all every one that matches the filter',
  },
  {
    name: 'drop',
    done: 'dropped',
    description: 'drop a dead letter, or with --all every one that matches the filter',
  },
];
/** Letters per request, so that each is answered soon. */
const perRequest = 500;
const listedMax = 20;

function lettersPath({ fleet: fleet_id }: FleetOptions) {
  return pathTo('/fleets/{fleet_id}/dead-letters', { fleet_id });
}

const filter = {
  device_id: new Option('--device <id>', 'only letters to this device'),
  name: new Option('--name <name>', 'only this name'),
  reason: option(
    '--reason <reason>',
    'only this reason: rejected, expired, over_requeued or mailbox_full; repeat it for any of several',
    several,
  ),
  from: option(
    '--since <when>',
    'dead-lettered at this time or later: a time, or a duration ago like 7d',
    moment('back'),
  ),
  to: option('--until <when>', 'dead-lettered before this time, likewise', moment('back')),
} satisfies OptionsOf<LetterFilter>;

interface SettleOptions extends FleetOptions, BulkOptions {
  device?: string;
  all?: boolean;
}

/** Settles one letter, or those that match the filter. */
async function settle(verb: Verb, mailId: string | undefined, options: SettleOptions): Promise<void> {
  if ((mailId === undefined) === (options.all !== true)) {
    throw new OperatorError('Give one mail id with --device, or --all.');
  }
  const client = connect(options);
  if (mailId === undefined) return settleAll(client, verb, options);
  const { device } = options;
  if (device === undefined) throw new OperatorError('Give the device of the mail: --device ID.');
  if (options.dryRun) throw new OperatorError('--dry-run goes with --all.');
  const { name, done } = verb;
  const json = { letters: [{ device_id: device, mail_id: mailId }] };
  const path = below(lettersPath(options), `:${name}`, {});
  const [outcome] = (await client.request('POST', path, { json })).items;
  if (outcome?.result !== done) {
    throw new OperatorError(`The letter was not ${done}: ${outcome?.result ?? 'not found'}.`);
  }
  const as = 'new_mail_id' in outcome ? ` as mail ${outcome.new_mail_id}` : '';
  print(options, outcome, `The letter is ${done}${as}.`);
}

/** Settles those that match the filter, page by page. */
async function settleAll(client: AdminClient, { name, done }: Verb, options: SettleOptions): Promise<void> {
  const list = lettersPath(options);
  const matching = valuesOf<LetterFilter>(filter, options);
  const select = () =>
    selectListed(
      client.pages(list, { ...matching, reason: matching.reason && [matching.reason].flat() }),
      ({ mail_id, device_id }) => `${mail_id} to ${device_id}`,
    );
  if (!(await isConfirmed([name, 'dead letters'], options, select))) return;
  const counts: Record<string, number> = { [done]: 0 };
  const failed: LetterOutcome[] = [];
  let after: string | null | undefined;
  do {
    const json = { filter: matching, limit: perRequest, ...(after && { after }) };
    const page: ListDocument<LetterOutcome> = await client.request('POST', below(list, `:${name}`, {}), {
      json,
    });
    for (const outcome of page.items) {
      counts[outcome.result] = (counts[outcome.result] ?? 0) + 1;
      if (outcome.result !== done && failed.length < listedMax) failed.push(outcome);
    }
    after = page.next;
  } while (after !== null);
  const summary = Object.entries(counts).map(([result, count]) => `${result}: ${count}`);
  const lines = failed.map(({ mail_id, device_id, result }) => `${mail_id} to ${device_id}: ${result}`);
  print(options, { counts, failed }, [...lines.map(printable), summary.join(', ')].join('\n'));
}

/** `dead-letter list|show|replay|drop`. */
export function addDeadLetterCommands(program: Command): void {
  const group = program
    .command('dead-letter')
    .description('manage mail that was rejected, expired or requeued too often');

  listCommand(group, '/fleets/{fleet_id}/dead-letters', {
    does: 'list the dead letters of a fleet, newest first',
    columns: deadLetterColumns,
    empty: 'There are no matching dead letters.',
    filter: {
      ...filter,
      order: new Option('--order <order>', 'by when the mail was sent').choices(['newest', 'oldest']),
    },
  });

  fleetCommand(group, 'show <mail_id>', 'print the payload of a dead letter, byte for byte')
    .requiredOption('--device <id>', 'the device it was for', deviceIdOption)
    .action(async (mailId: string, options: FleetOptions & { device: string }) => {
      const { device: device_id } = options;
      const path = below(lettersPath(options), '/{device_id}/{mail_id}', { device_id, mail_id: mailId });
      printRaw(options, await connect(options).requestText('GET', path));
    });

  for (const verb of verbs) {
    const command = withOptions(fleetCommand(group, `${verb.name} [mail_id]`, verb.description), filter);
    withConfirmation(command.option('--all', 'every one that matches the filter')).action(
      (mailId: string | undefined, options: SettleOptions) => settle(verb, mailId, options),
    );
  }
}
