import type { Command } from 'commander';
import type { DeviceFilterDocument } from '../../../contract/device.ts';
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
  replaceKeyHelp,
  replaceKeyOption,
  withIdempotencyKey,
} from '../../options.ts';
import { print } from '../../output.ts';
import { filterQuery, withDeviceFilter } from '../devices/device-filter.ts';
import { broadcastsPath, checkRefusals, devicesIn, follow, followHelp, summaryOf } from './broadcast.ts';

interface BroadcastOptions extends FleetOptions, BulkOptions {
  name: string;
  payload?: string;
  devices?: string;
  all?: boolean;
  ttlSeconds?: number;
  requeuesMax?: number;
  replaceKey?: string;
  deliverAt?: string;
  pauseAfter?: number;
  idempotencyKey?: string;
  follow?: boolean;
}

/** To whom a broadcast goes. */
type Target = { devices: string[] } | { all: true } | DeviceFilterDocument;

/** @throws OperatorError unless there is one target. */
async function targetOf(options: BroadcastOptions): Promise<Target> {
  const { devices, all } = options;
  const filter = filterQuery(options);
  const isFiltered = Object.keys(filter).length > 0;
  if ([devices !== undefined, all === true, isFiltered].filter((way) => way).length !== 1) {
    throw new OperatorError('Select devices in one way: --all, --devices FILE, or filters.');
  }
  if (isFiltered) return filter;
  if (devices === undefined) return { all: true };
  return { devices: devicesIn((await readInput(devices)).toString('utf8'), devices) };
}

async function select(client: AdminClient, fleet: string, to: Target): Promise<Selection> {
  if ('devices' in to) return { count: to.devices.length, first: to.devices };
  const filter = 'all' in to ? {} : to;
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
    replace_key: options.replaceKey,
    deliver_at: options.deliverAt,
    pause_after: options.pauseAfter,
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
  const command = withDeviceFilter(
    fleetCommand(group, 'broadcast', 'send a mail to many devices, as a job on the server'),
  )
    .requiredOption('--name <name>', 'name of the mail, and of its schema if it has one')
    .option('--payload <json>', payloadHelp)
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
    .option('--replace-key <key>', replaceKeyHelp, replaceKeyOption)
    .option(
      '--deliver-at <when>',
      'when to deliver it to the mailboxes: a time, or a duration from now like 2h',
      moment('ahead'),
    )
    .option(
      '--pause-after <n>',
      'pause once so many devices had their turn; `broadcast resume` goes on with the others',
      integerOption(1, Number.MAX_SAFE_INTEGER),
    )
    .option('--follow', followHelp);
  withConfirmation(withIdempotencyKey(command)).action(broadcastMail);
}
