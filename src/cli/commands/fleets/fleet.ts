import type { Command } from 'commander';
import { activeSecondsMax, mailRequeuesMax, mailTtlSecondsMax } from '../../../core/bounds.ts';
import { OperatorError } from '../../../core/errors.ts';
import { pathOf } from '../../admin-client.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import {
  clientCommand,
  fleetCommand,
  integerOption,
  type ListOptions,
  withListOptions,
} from '../../options.ts';
import { fields, listText, print } from '../../output.ts';

interface Fleet {
  fleet_id: string;
  name: string;
  created_at: string;
  mailbox_mails_max: number;
  mail_ttl_seconds: number;
  mail_requeues_max: number | null;
}

interface FleetCounts {
  devices: number;
  disabled: number;
  connected: number;
  active: number;
  counted_at: string;
}

type Setting = number | 'default';

interface FleetSettings {
  name?: string;
  mailboxMailsMax?: Setting;
  mailTtlSeconds?: Setting;
  mailRequeuesMax?: Setting;
  activeSeconds?: Setting;
}

/** Keeps "default" as text: Commander would turn null into an empty string. */
function orDefault(read: (text: string) => number): (text: string) => Setting {
  return (text) => (text === 'default' ? text : read(text));
}

/** `default` becomes null, which resets to the configuration's. */
function limitOf(setting: Setting | undefined): number | null | undefined {
  return setting === 'default' ? null : setting;
}

function withSettings(command: Command): Command {
  const ofMailbox = orDefault(integerOption(1, 65_535));
  return command
    .option('--name <text>', 'a name for people')
    .option('--mailbox-mails-max <n>', 'maximum mails per mailbox, or "default"', ofMailbox)
    .option(
      '--mail-ttl-seconds <n>',
      'TTL of mail, or "default"',
      orDefault(integerOption(1, mailTtlSecondsMax)),
    )
    .option(
      '--mail-requeues-max <n>',
      'requeues allowed before a mail becomes a dead letter, or "default": unlimited',
      orDefault(integerOption(0, mailRequeuesMax)),
    )
    .option(
      '--active-seconds <n>',
      'how long a device counts as active after it was last seen, or "default"',
      orDefault(integerOption(1, activeSecondsMax)),
    );
}

function documentOf(settings: FleetSettings) {
  return {
    name: settings.name,
    mailbox_mails_max: limitOf(settings.mailboxMailsMax),
    mail_ttl_seconds: limitOf(settings.mailTtlSeconds),
    mail_requeues_max: limitOf(settings.mailRequeuesMax),
    active_seconds: limitOf(settings.activeSeconds),
  };
}

/** `fleet create|set|list|counts`. */
export function addFleetCommands(program: Command): void {
  const group = program.command('fleet').description('create, change, list and count fleets');

  withSettings(
    clientCommand(group, 'create', 'create a fleet').option(
      '--id <id>',
      '8 letters or digits; default: random',
    ),
  ).action(async (options: ConnectionOptions & FleetSettings & { id?: string }) => {
    const json = { fleet_id: options.id, ...documentOf(options) };
    const fleet = await connect(options).request<Fleet>('POST', '/fleets', { json });
    print(options, fleet, fields(fleet));
  });

  withSettings(
    clientCommand(group, 'set <fleet_id>', 'change a fleet; absent options stay as they are'),
  ).action(async (fleetId: string, options: ConnectionOptions & FleetSettings) => {
    const json = documentOf(options);
    if (Object.values(json).every((value) => value === undefined)) {
      throw new OperatorError('Nothing to change: give an option, see --help.');
    }
    const fleet = await connect(options).request<Fleet>('PATCH', pathOf('fleets', fleetId), { json });
    print(options, fleet, fields(fleet));
  });

  withListOptions(clientCommand(group, 'list', 'list all fleets')).action(
    async (options: ConnectionOptions & ListOptions) => {
      const fleets = await connect(options).list<Fleet>('/fleets', options);
      print(options, fleets, listText(fleets, ['fleet_id', 'name', 'created_at'], 'There are no fleets.'));
    },
  );

  fleetCommand(group, 'counts', 'count the devices of a fleet: all, disabled, connected, active').action(
    async (options: ConnectionOptions & { fleet: string }) => {
      const path = `${pathOf('fleets', options.fleet)}/counts`;
      const counts = await connect(options).request<FleetCounts>('GET', path);
      print(options, counts, fields(counts));
    },
  );
}
