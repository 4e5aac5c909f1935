import { SingleBar } from 'cli-progress';
import { type Command, Option } from 'commander';
import { OperatorError } from '../../../core/errors.ts';
import { type AdminClient, pathOf } from '../../admin-client.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { fleetCommand, several } from '../../options.ts';
import { print, printable } from '../../output.ts';
import { type DeviceFilterOptions, filterQuery, withDeviceFilter } from './device-filter.ts';

interface ChangeOptions extends ConnectionOptions, DeviceFilterOptions {
  fleet: string;
  all?: boolean;
  device?: string[];
  enable?: boolean;
  disable?: boolean;
  addTag?: string[];
  removeTag?: string[];
}

interface Answer {
  changed: number;
  unchanged: number;
  refused: { device_id: string; error: string; msg: string }[];
  next: string | null;
}

const idsPerCall = 500;
const refusalsShownMax = 10;

/** What is asked of the server, one after the other: ids some hundreds at a time, else one selection. */
function selections({ all, device, ...options }: ChangeOptions): object[] {
  const { enabled, ...filter } = filterQuery(options);
  const given = { ...filter, ...(enabled !== undefined && { enabled: enabled === 'true' }) };
  const isFiltered = Object.keys(given).length > 0;
  const ways = [all === true, device !== undefined, isFiltered].filter((way) => way).length;
  if (ways !== 1)
    throw new OperatorError('Say which devices: --all, --device ID, or what they have in common.');
  if (device === undefined) return [all ? { all } : given];
  return Array.from({ length: Math.ceil(device.length / idsPerCall) }, (_, part) => ({
    device_ids: device.slice(part * idsPerCall, (part + 1) * idsPerCall),
  }));
}

async function countOf(client: AdminClient, { fleet, json }: ChangeOptions): Promise<number | undefined> {
  if (json || !process.stderr.isTTY) return undefined;
  const { devices } = await client.request<{ devices: number }>('GET', `${pathOf('fleets', fleet)}/counts`);
  return devices;
}

async function changeDevices(options: ChangeOptions): Promise<void> {
  const { enable, disable, addTag, removeTag } = options;
  const change = {
    ...((enable || disable) && { enabled: enable === true }),
    ...(addTag && { add_tags: addTag }),
    ...(removeTag && { remove_tags: removeTag }),
  };
  if (Object.keys(change).length === 0) {
    throw new OperatorError('Say what to change: --enable, --disable, --add-tag or --remove-tag.');
  }
  const wanted = selections(options);
  const client = connect(options);
  const total = await countOf(client, options);
  const bar =
    total === undefined ? undefined : new SingleBar({ format: 'Devices {value} of at most {total}' });
  bar?.start(total ?? 0, 0);
  const sum: Omit<Answer, 'next'> = { changed: 0, unchanged: 0, refused: [] };
  try {
    for (const select of wanted) {
      let after: string | null | undefined;
      do {
        const json = { select, change, ...(after && { after }) };
        const path = `${pathOf('fleets', options.fleet)}/devices:change`;
        const answer: Answer = await client.request('POST', path, { json });
        sum.changed += answer.changed;
        sum.unchanged += answer.unchanged;
        sum.refused.push(...answer.refused);
        bar?.update(sum.changed + sum.unchanged);
        after = answer.next;
      } while (after !== null);
    }
  } finally {
    bar?.stop();
  }
  const refused = sum.refused
    .slice(0, refusalsShownMax)
    .map(({ device_id, msg }) => `\n${device_id}: ${printable(msg)}`);
  const text = `Changed ${sum.changed} devices; ${sum.unchanged} were so already; ${sum.refused.length} were refused.`;
  print(options, sum, text + refused.join(''));
  if (sum.refused.length > 0) process.exitCode = 1;
}

/** `device change`. */
export function addDeviceChange(group: Command): void {
  withDeviceFilter(fleetCommand(group, 'change', 'enable, disable or tag many devices at once'))
    .option('--device <id>', 'this device; may be given several times', several)
    .option('--all', 'every device of the fleet')
    .option('--enable', 'let them in')
    .addOption(new Option('--disable', 'refuse them, and end their streams').conflicts('enable'))
    .option('--add-tag <tag>', 'give them the tag; may be given several times', several)
    .option('--remove-tag <tag>', 'take the tag from them; may be given several times', several)
    .action(changeDevices);
}
