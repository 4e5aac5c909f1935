import type { Command } from 'commander';
import type { BroadcastDocument, BroadcastOutcomesDocument } from '../../../contract/broadcast.ts';
import {
  broadcastColumns,
  broadcastMailColumns,
  broadcastRefusalColumns,
} from '../../../contract/columns/mail.ts';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { sleep } from '../../../core/async.ts';
import { OperatorError } from '../../../core/errors.ts';
import type { AdminClient } from '../../admin-client.ts';
import { connect } from '../../connection.ts';
import { type FleetOptions, fleetCommand, option, several } from '../../options.ts';
import { fields, print, progressBar } from '../../output.ts';
import { listCommand, requestCommand } from '../declared.ts';

const pollIntervalMs = 500;

const broadcasts = '/fleets/{fleet_id}/broadcasts';

export function broadcastsPath({ fleet: fleet_id }: { fleet: string }) {
  return pathTo(broadcasts, { fleet_id });
}

function broadcastPath(options: { fleet: string }, broadcast_id: string) {
  return below(broadcastsPath(options), '/{broadcast_id}', { broadcast_id });
}

/** Waits until the broadcast has ended, is paused or is held; it also runs without being polled. */
export async function follow(
  client: AdminClient,
  options: { fleet: string; json?: boolean },
  broadcast: BroadcastDocument,
): Promise<BroadcastDocument> {
  const bar = progressBar('Broadcast {bar} {value} of {total} devices, {eta_formatted} left', options);
  let last = broadcast;
  bar?.start(last.devices ?? 0, 0);
  try {
    while (last.state === 'running') {
      await sleep(pollIntervalMs);
      last = await client.request('GET', broadcastPath(options, last.broadcast_id));
      bar?.setTotal(last.devices ?? last.queued + last.refused);
      bar?.update(last.queued + last.refused);
    }
  } finally {
    bar?.stop();
  }
  return last;
}

export function summaryOf({ broadcast_id, state, queued, refused }: BroadcastDocument): string {
  const more = refused === 0 ? '' : ` (broadcast refusals ${broadcast_id} lists them)`;
  return `Broadcast ${broadcast_id} is ${state}; mails queued: ${queued}, refused: ${refused}${more}.`;
}

export const followHelp =
  'wait until it has ended, and fail if as many devices are refused the mail as get it, or more';

/** @throws OperatorError if as many devices were refused the mail as got it, or more. */
export function checkRefusals({ broadcast_id, queued, refused }: BroadcastDocument): void {
  if (refused === 0 || refused < queued) return;
  const which = queued === 0 ? 'All' : `${refused} of ${queued + refused}`;
  throw new OperatorError(
    `${which} devices were refused the mail: broadcast refusals ${broadcast_id} says why.`,
  );
}

async function deleteBroadcast(id: string, options: FleetOptions): Promise<void> {
  await connect(options).request('DELETE', broadcastPath(options, id));
  print(options, { broadcast_id: id }, `Broadcast ${id} is deleted.`);
}

async function showBroadcast(id: string, options: FleetOptions & { follow?: boolean }): Promise<void> {
  const client = connect(options);
  const shown = await client.request('GET', broadcastPath(options, id));
  const broadcast = options.follow ? await follow(client, options, shown) : shown;
  const outcomes = await client.request('GET', below(broadcastPath(options, id), '/outcomes', {}));
  const text = `${options.follow ? summaryOf(broadcast) : fields(broadcast)}\n${outcomesText(outcomes)}`;
  print(options, { ...broadcast, outcomes }, text);
  if (options.follow) checkRefusals(broadcast);
}

function outcomesText(outcomes: BroadcastOutcomesDocument): string {
  const counts = Object.entries(outcomes).filter(([, count]) => count > 0);
  const text = counts.map(([state, count]) => `${count} ${state}`).join(', ');
  return `Mails: ${text === '' ? 'none' : text}.`;
}

/** `broadcast list|show|refusals|pause|resume|cancel|delete`; `mail broadcast` starts one. */
export function addBroadcastCommands(program: Command): void {
  const group = program.command('broadcast').description('manage broadcasts of mail');

  listCommand(group, broadcasts, {
    does: 'list the broadcasts of a fleet, newest first',
    columns: broadcastColumns,
    empty: 'There are no broadcasts.',
  });
  fleetCommand(group, 'show <id>', 'show a broadcast and its progress')
    .option('--follow', followHelp)
    .action(showBroadcast);
  listCommand(group, `${broadcasts}/{broadcast_id}/mails`, {
    usage: 'mails <id>',
    does: 'list what became of the mail on each device that got it',
    columns: broadcastMailColumns,
    empty: 'There are no such mails.',
    filter: {
      state: option(
        '--state <state>',
        'only this state: delayed, queued, acked, rejected, expired, withdrawn, over_requeued, mailbox_full or unknown; repeat it for any of several',
        several,
      ),
    },
  });
  listCommand(group, `${broadcasts}/{broadcast_id}/refusals`, {
    usage: 'refusals <id>',
    does: 'list the devices that did not get the mail, and why',
    columns: broadcastRefusalColumns,
    empty: 'There are no refusals.',
  });
  for (const [verb, does] of [
    ['pause', 'pause a broadcast'],
    ['resume', 'resume a broadcast'],
    ['cancel', 'cancel a broadcast; mail already sent stays'],
  ] as const)
    requestCommand(group, 'POST', `${broadcasts}/{broadcast_id}/${verb}`, {
      usage: `${verb} <id>`,
      does,
      done: summaryOf,
    });
  fleetCommand(group, 'delete <id>', 'delete an ended broadcast').action(deleteBroadcast);
}

/** Reads device ids, one per line, or the column `device_id` of a CSV. @throws OperatorError */
export function devicesIn(text: string, file: string): string[] {
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const column = lines[0]?.split(',').indexOf('device_id') ?? -1;
  const ids = column < 0 ? lines : lines.slice(1).map((line) => line.split(',')[column] ?? '');
  if (ids.length === 0) throw new OperatorError(`${file} lists no device.`);
  return ids;
}
