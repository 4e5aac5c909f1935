import type { Command } from 'commander';
import { mailLifeSecondsMax } from '../../core/bounds.ts';
import { type List, pathOf } from '../admin-client.ts';
import { type ConnectionOptions, connect } from '../connection.ts';
import {
  fleetCommand,
  idempotencyHeaders,
  integer,
  type ListOptions,
  withIdempotencyKey,
  withListOptions,
} from '../options.ts';
import { listText, print } from '../output.ts';
import { addMailBroadcast } from './mail-broadcast.ts';

interface DeviceOptions extends ConnectionOptions {
  fleet: string;
  device: string;
}

interface SendOptions extends DeviceOptions {
  name: string;
  payload?: string;
  lifeSeconds?: number;
  idempotencyKey?: string;
}

interface WaitingMail {
  mail_id: string;
  name: string;
  accepted_at: string;
  expires_at: string;
  fetch_count: number;
  first_fetched_at: string | null;
  requeue_count: number;
}

function deviceCommand(group: Command, name: string, description: string): Command {
  return fleetCommand(group, name, description).requiredOption('--device <id>', 'the device');
}

function mailPath({ fleet, device }: DeviceOptions): string {
  return pathOf('fleets', fleet, 'devices', device, 'mail');
}

async function sendMail(options: SendOptions): Promise<void> {
  const { name, payload, lifeSeconds } = options;
  const query = lifeSeconds === undefined ? '' : `?life_seconds=${lifeSeconds}`;
  const sent = await connect(options).request<{ mail_id: string; mailbox_size: number }>(
    'POST',
    `${mailPath(options)}${pathOf(name)}${query}`,
    payload === undefined ? undefined : { bytes: Buffer.from(payload) },
    idempotencyHeaders(options),
  );
  print(options, sent, `Mail ${sent.mail_id} is queued; mails waiting: ${sent.mailbox_size}.`);
}

/** One page, so that the server's text can be printed as it came: parsing would change large numbers (D11). */
async function listMail(options: DeviceOptions & ListOptions): Promise<void> {
  const query = new URLSearchParams({ limit: String(options.limit) });
  if (options.after !== undefined) query.set('after', options.after);
  const text = await connect(options).requestText('GET', `${mailPath(options)}?${query}`);
  if (options.json) {
    process.stdout.write(`${text}\n`);
    return;
  }
  const mails = JSON.parse(text) as List<WaitingMail>;
  const columns = ['mail_id', 'name', 'accepted_at', 'expires_at', 'fetch_count', 'requeue_count'] as const;
  print(options, mails, listText(mails, columns, 'The mailbox is empty.'));
}

/** `mail send|list`. */
export function addMailCommands(program: Command): void {
  const group = program.command('mail').description('send mail to a device and look into its mailbox');

  withIdempotencyKey(deviceCommand(group, 'send', 'put a mail into the mailbox of a device'))
    .requiredOption('--name <name>', 'what the mail is: the name of its schema, if it has one')
    .option('--payload <json>', 'a JSON object, delivered byte for byte; without it, {}')
    .option('--life-seconds <n>', "its life, instead of the fleet's", integer(1, mailLifeSecondsMax))
    .action(sendMail);

  addMailBroadcast(group);

  withListOptions(
    deviceCommand(group, 'list', 'list the mails that wait, head first; --json has their payloads'),
    1_000,
  ).action(listMail);
}
