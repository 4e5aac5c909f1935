import type { Command } from 'commander';
import { OperatorError } from '../../../core/errors.ts';
import { type List, pathOf } from '../../admin-client.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { fleetCommand, type ListOptions, withListOptions } from '../../options.ts';
import { listText, print, printable, printRaw } from '../../output.ts';

interface FilterOptions extends ConnectionOptions {
  fleet: string;
  device?: string;
  name?: string;
  reason?: string;
  from?: string;
  to?: string;
}

interface Letter {
  mail_id: string;
  device_id: string;
  name: string;
  reason: string;
  died_at: string;
  requeue_count: number;
  payload_bytes: number;
}

interface Outcome {
  mail_id: string;
  device_id: string;
  result: string;
  new_mail_id?: string;
}

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

function lettersPath(fleet: string): string {
  return pathOf('fleets', fleet, 'dead-letters');
}

function filterOf({ device, name, reason, from, to }: FilterOptions): Record<string, string> {
  const filter = { device_id: device, name, reason, from, to };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >;
}

function withFilter(command: Command): Command {
  return command
    .option('--device <id>', 'only letters to this device')
    .option('--name <name>', 'only this name')
    .option('--reason <reason>', 'only this reason: rejected, expired, over_requeued or mailbox_full')
    .option('--from <time>', 'dead-lettered at this time or later, like 2026-01-31T08:00:00Z')
    .option('--to <time>', 'dead-lettered before this time');
}

/** Settles one letter, or page by page those that match the filter. */
async function settle(
  { name: verb, done }: Verb,
  mailId: string | undefined,
  options: FilterOptions & { all?: boolean },
): Promise<void> {
  const client = connect(options);
  const path = `${lettersPath(options.fleet)}:${verb}`;
  if ((mailId === undefined) === (options.all !== true)) {
    throw new OperatorError('Give one mail id with --device, or --all.');
  }
  if (mailId !== undefined) {
    if (options.device === undefined) throw new OperatorError('Give the device of the mail: --device ID.');
    const letters = [{ device_id: options.device, mail_id: mailId }];
    const { items } = await client.request<List<Outcome>>('POST', path, { json: { letters } });
    const [outcome] = items;
    if (outcome?.result !== done) {
      throw new OperatorError(`The letter was not ${done}: ${outcome?.result ?? 'not found'}.`);
    }
    const as = outcome.new_mail_id === undefined ? '' : ` as mail ${outcome.new_mail_id}`;
    print(options, outcome, `The letter is ${done}${as}.`);
    return;
  }
  const counts: Record<string, number> = { [done]: 0 };
  const failed: Outcome[] = [];
  let after: string | null | undefined;
  do {
    const json = { filter: filterOf(options), limit: perRequest, ...(after && { after }) };
    const page: List<Outcome> = await client.request('POST', path, { json });
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

  withListOptions(withFilter(fleetCommand(group, 'list', 'list the dead letters of a fleet'))).action(
    async (options: FilterOptions & ListOptions) => {
      const letters = await connect(options).list<Letter>(
        lettersPath(options.fleet),
        options,
        filterOf(options),
      );
      const columns = ['mail_id', 'device_id', 'name', 'reason', 'died_at', 'payload_bytes'] as const;
      print(options, letters, listText(letters, columns, 'There are no matching dead letters.'));
    },
  );

  fleetCommand(group, 'show <mail_id>', 'print the payload of a dead letter, byte for byte')
    .requiredOption('--device <id>', 'the device it was for')
    .action(async (mailId: string, options: FilterOptions & { device: string }) => {
      const path = lettersPath(options.fleet) + pathOf(options.device, mailId);
      printRaw(options, await connect(options).requestText('GET', path));
    });

  for (const verb of verbs) {
    withFilter(fleetCommand(group, `${verb.name} [mail_id]`, verb.description))
      .option('--all', 'every one that matches the filter')
      .action((mailId: string | undefined, options: FilterOptions & { all?: boolean }) =>
        settle(verb, mailId, options),
      );
  }
}
