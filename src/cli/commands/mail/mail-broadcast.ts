import type { Command } from 'commander';
import { mailRequeuesMax, mailTtlSecondsMax } from '../../../core/bounds.ts';
import { OperatorError } from '../../../core/errors.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { readInput } from '../../input.ts';
import { fleetCommand, idempotencyKeyHeaders, integerOption, withIdempotencyKey } from '../../options.ts';
import { print } from '../../output.ts';
import { type BroadcastAnswer, broadcastsPath, devicesIn, follow, summaryOf } from './broadcast.ts';

interface BroadcastOptions extends ConnectionOptions {
  fleet: string;
  name: string;
  payload?: string;
  tag?: string;
  devices?: string;
  all?: boolean;
  ttlSeconds?: number;
  requeuesMax?: number;
  deliverAt?: string;
  idempotencyKey?: string;
  follow?: boolean;
}

async function targetOf({ tag, devices, all }: BroadcastOptions): Promise<object> {
  if ([tag, devices, all].filter((one) => one !== undefined).length !== 1) {
    throw new OperatorError('Give one target: --tag, --devices FILE or --all.');
  }
  if (tag !== undefined) return { tag };
  if (devices === undefined) return { all: true };
  return { devices: devicesIn((await readInput(devices)).toString('utf8'), devices) };
}

/** Inserts the payload's own text: serializing it again would change large numbers (D11). */
function bodyOf(options: BroadcastOptions, to: object): Buffer {
  const { name, payload } = options;
  const document = JSON.stringify({
    name,
    to,
    ttl_seconds: options.ttlSeconds,
    requeues_max: options.requeuesMax,
    deliver_at: options.deliverAt,
  });
  if (payload !== undefined) {
    try {
      JSON.parse(payload);
    } catch (error) {
      throw new OperatorError(`--payload is not JSON: ${(error as Error).message}.`);
    }
  }
  return Buffer.from(payload === undefined ? document : `${document.slice(0, -1)},"payload":${payload}}`);
}

async function broadcastMail(options: BroadcastOptions): Promise<void> {
  const client = connect(options);
  const bytes = bodyOf(options, await targetOf(options));
  const headers = idempotencyKeyHeaders(options);
  const put = await client.request<BroadcastAnswer>(
    'POST',
    broadcastsPath(options.fleet),
    { bytes },
    headers,
  );
  const broadcast = options.follow ? await follow(client, options, put) : put;
  print(options, broadcast, summaryOf(broadcast));
}

/** `mail broadcast`. */
export function addMailBroadcast(group: Command): void {
  withIdempotencyKey(fleetCommand(group, 'broadcast', 'send a mail to many devices, as a job on the server'))
    .requiredOption('--name <name>', 'name of the mail, and of its schema if it has one')
    .option('--payload <json>', 'a JSON object, delivered byte for byte; default: {}')
    .option('--tag <tag>', 'send to all devices with this tag')
    .option(
      '--devices <file>',
      'send to the devices in a file: one id per line, or a CSV with a column device_id',
    )
    .option('--all', 'send to all devices of the fleet')
    .option('--ttl-seconds <n>', "TTL, instead of the fleet's", integerOption(1, mailTtlSecondsMax))
    .option(
      '--requeues-max <n>',
      "requeues allowed before it becomes a dead letter, instead of the fleet's",
      integerOption(0, mailRequeuesMax),
    )
    .option('--deliver-at <time>', 'when to deliver it to the mailboxes: ISO 8601 with a time zone')
    .option('--follow', 'wait until it has ended')
    .action(broadcastMail);
}
