import type { Command } from 'commander';
import { delayedMailColumns, queuedMailColumns } from '../../../contract/columns/mail.ts';
import type { ListDocument } from '../../../contract/document.ts';
import type { ReceiptDocument, SentMailDocument, WaitingMailDocument } from '../../../contract/mail.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { mailRequeuesMax, mailTtlSecondsMax, waitSecondsMax } from '../../../core/bounds.ts';
import { connect } from '../../connection.ts';
import { payloadHelp, readPayload } from '../../input.ts';
import { moment, secondsOption } from '../../moment.ts';
import {
  deviceIdOption,
  type FleetOptions,
  fleetCommand,
  idempotencyKeyHeaders,
  integerOption,
  type ListOptions,
  replaceKeyHelp,
  replaceKeyOption,
  withIdempotencyKey,
  withListOptions,
} from '../../options.ts';
import { fields, listText, printAnswer } from '../../output.ts';
import { requestCommand } from '../declared.ts';
import { addMailBroadcast } from './mail-broadcast.ts';

interface DeviceOptions extends FleetOptions {
  device: string;
}

interface SendOptions extends DeviceOptions {
  name: string;
  payload?: string;
  ttlSeconds?: number;
  requeuesMax?: number;
  replaceKey?: string;
  deliverAt?: string;
  wait?: number;
  idempotencyKey?: string;
}

function withDevice(command: Command): Command {
  return command.requiredOption('--device <id>', 'the device', deviceIdOption);
}

function deviceCommand(group: Command, name: string, description: string): Command {
  return withDevice(fleetCommand(group, name, description));
}

function idsOf({ fleet, device }: DeviceOptions) {
  return { fleet_id: fleet, device_id: device };
}

async function sendMail(options: SendOptions): Promise<void> {
  const { name, payload, ttlSeconds, requeuesMax, replaceKey, deliverAt, wait } = options;
  const path = pathTo('/fleets/{fleet_id}/devices/{device_id}/mail/{name}', { ...idsOf(options), name });
  const text = await connect(options).requestText('POST', path, {
    query: {
      ttl_seconds: ttlSeconds,
      requeues_max: requeuesMax,
      replace_key: replaceKey,
      deliver_at: deliverAt,
      wait,
    },
    ...(payload !== undefined && { bytes: Buffer.from(await readPayload(payload)) }),
    headers: idempotencyKeyHeaders(options),
  });
  printAnswer(options, text, () => sentText(JSON.parse(text)));
}

/** The receipt of a mail that was settled while this waited for it, or that it was sent. */
function sentText(answer: SentMailDocument | ReceiptDocument): string {
  if (!('mailbox_size' in answer)) return fields(answer);
  return `Mail ${answer.mail_id} is ${answer.state}; mails waiting: ${answer.mailbox_size}.`;
}

/** Lists one page only, to print the server's text unchanged. */
async function listMail(options: DeviceOptions & ListOptions & { delayed?: boolean }): Promise<void> {
  const { limit, after, delayed } = options;
  const query = { limit, after, state: delayed ? 'delayed' : undefined };
  const path = pathTo('/fleets/{fleet_id}/devices/{device_id}/mail', idsOf(options));
  const text = await connect(options).requestText('GET', path, { query });
  printAnswer(options, text, () => {
    const mails = JSON.parse(text) as ListDocument<WaitingMailDocument>;
    return options.delayed
      ? listText(mails, delayedMailColumns, 'No mail is delayed.')
      : listText(mails, queuedMailColumns, 'The mailbox is empty.');
  });
}

/** `mail send|list|receipt|withdraw`. */
export function addMailCommands(program: Command): void {
  const group = program.command('mail').description('send mail to devices, track it, and list mailboxes');

  withIdempotencyKey(deviceCommand(group, 'send', 'send a mail to a device'))
    .requiredOption('--name <name>', 'name of the mail, and of its schema if it has one')
    .option('--payload <json>', payloadHelp)
    .option('--ttl-seconds <n>', "TTL, instead of the fleet's", secondsOption(1, mailTtlSecondsMax))
    .option(
      '--requeues-max <n>',
      "requeues allowed before it becomes a dead letter, instead of the fleet's",
      integerOption(0, mailRequeuesMax),
    )
    .option('--replace-key <key>', replaceKeyHelp, replaceKeyOption)
    .option(
      '--deliver-at <when>',
      'when to deliver it to the mailbox: a time, or a duration from now like 2h',
      moment('ahead'),
    )
    .option(
      '--wait <seconds>',
      'wait until it is settled, and show its receipt with the reply',
      integerOption(1, waitSecondsMax),
    )
    .action(sendMail);

  const one = '/fleets/{fleet_id}/devices/{device_id}/mail/{mail_id}';
  withDevice(
    requestCommand(group, 'GET', one, {
      usage: 'receipt <mail_id>',
      does: 'show the receipt of a mail',
    }),
  );
  withDevice(
    requestCommand(group, 'DELETE', one, {
      usage: 'withdraw <mail_id>',
      does: 'withdraw a queued or delayed mail',
      done: ({ mailbox_size }) => `The mail is withdrawn; mails waiting: ${mailbox_size}.`,
    }),
  );
  addMailBroadcast(group);

  withListOptions(
    deviceCommand(group, 'list', 'list the queued mails, head first; --json includes payloads'),
    1_000,
  )
    .option('--delayed', 'list the delayed mails instead, next delivery first')
    .action(listMail);
}
