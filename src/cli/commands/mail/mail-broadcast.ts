import type { Command } from 'commander';
import { pathTo } from '../../../contract/routes/path.ts';
import { mailRequeuesMax, mailTtlSecondsMax } from '../../../core/bounds.ts';
import { OperatorError } from '../../../core/errors.ts';
import type { AdminClient } from '../../admin-client.ts';
import {
  type BulkOptions,
  isConfirmed,
  type Selection,
  selectListed,
  withConfirmation,
} from '../../confirmation.ts';
import { connect } from '../../connection.ts';
import { payloadHelp, readInput, readPayload } from '../../input.ts';
import { moment, secondsOption } from '../../moment.ts';
import {
  type FleetOptions,
  fleetCommand,
  idempotencyKeyHeaders,
  integerOption,
  several,
  withIdempotencyKey,
} from '../../options.ts';
import { print } from '../../output.ts';
import { broadcastsPath, checkRefusals, devicesIn, follow, followHelp, summaryOf } from './broadcast.ts';

interface BroadcastOptions extends FleetOptions, BulkOptions {
  name: string;
  payload?: string;
  tag?: string[];
  devices?: string;
  all?: boolean;
  ttlSeconds?: number;
  requeuesMax?: number;
  deliverAt?: string;
  idempotencyKey?: string;
  follow?: boolean;
}

/** To whom a broadcast goes: one of these. */
interface Target {
  devices?: string[];
  tag?: string[];
  all?: true;
}

/** @throws OperatorError unless there is one target. */
async function targetOf({ tag, devices, all }: BroadcastOptions): Promise<Target> {
  if ([tag, devices, all].filter((one) => one !== undefined).length !== 1) {
    throw new OperatorError('Give one target: --tag, --devices FILE or --all.');
  }
  if (tag !== undefined) return { tag };
  if (devices === undefined) return { all: true };
  return { devices: devicesIn((await readInput(devices)).toString('utf8'), devices) };
}

async function select(client: AdminClient, fleet: string, to: Target): Promise<Selection> {
  if (to.devices !== undefined) return { count: to.devices.length, first: to.devices };
  const filter = to.tag === undefined ? {} : { tag: to.tag };
  const path = pathTo('/fleets/{fleet_id}/devices', { fleet_id: fleet });
  return selectListed(client.pages(path, filter), ({ device_id }) => device_id);
}

/** Inserts the payload's own text: serializing it again would change large numbers (D11). */
async function bodyOf(options: BroadcastOptions, to: Target): Promise<Buffer> {
  const { name } = options;
  const payload = options.payload === undefined ? undefined : await readPayload(options.payload);
  const document = JSON.stringify({
    name,
    to,
    ttl_seconds: options.ttlSeconds,
    requeues_max: options.requeuesMax,
    deliver_at: options.deliverAt,
  });
  return Buffer.from(payload === undefined ? document : `${document.slice(0, -1)},"payload":${payload}}`);
}

async function broadcastMail(options: BroadcastOptions): Promise<void> {
  const client = connect(options);
  const to = await targetOf(options);
  const bytes = await bodyOf(options, to);
  const deed = ['send this mail to', 'devices'] as const;
  if (!(await isConfirmed(deed, options, () => select(client, options.fleet, to)))) return;
  const headers = idempotencyKeyHeaders(options);
  const put = await client.request('POST', broadcastsPath(options), { bytes, headers });
  const broadcast = options.follow ? await follow(client, options, put) : put;
  print(options, broadcast, summaryOf(broadcast));
  if (options.follow) checkRefusals(broadcast);
}

/** `mail broadcast`. */
export function addMailBroadcast(group: Command): void {
  const command = fleetCommand(group, 'broadcast', 'send a mail to many devices, as a job on the server')
    .requiredOption('--name <name>', 'name of the mail, and of its schema if it has one')
    .option('--payload <json>', payloadHelp)
    .option('--tag <tag>', 'send to all devices with this tag; repeat it to require several', several)
    .option(
      '--devices <file>',
      'send to the devices in a file: one id per line, or a CSV with a column device_id',
    )
    .option('--all', 'send to all devices of the fleet')
    .option('--ttl-seconds <n>', "TTL, instead of the fleet's", secondsOption(1, mailTtlSecondsMax))
    .option(
      '--requeues-max <n>',
      "requeues allowed before it becomes a dead letter, instead of the fleet's",
      integerOption(0, mailRequeuesMax),
    )
    .option(
      '--deliver-at <when>',
      'when to deliver it to the mailboxes: a time, or a duration from now like 2h',
      moment('ahead'),
    )
    .option('--follow', followHelp);
  withConfirmation(withIdempotencyKey(command)).action(broadcastMail);
}
