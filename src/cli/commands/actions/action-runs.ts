import { type Command, Option } from 'commander';
import type { LogLineDocument, RunDocument, ShownRunDocument } from '../../../contract/action-run.ts';
import type { ListDocument } from '../../../contract/document.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { sleep } from '../../../core/async.ts';
import type { AdminClient, Parameters } from '../../admin-client.ts';
import { connect } from '../../connection.ts';
import {
  type FleetOptions,
  fleetCommand,
  integerOption,
  type ListOptions,
  several,
  withListOptions,
} from '../../options.ts';
import { fields, listText, print, printable } from '../../output.ts';
import { addDeadLetterCommandsOf } from '../dead-letters-of.ts';
import { actionUrl } from './action-path.ts';
import { reasonInLine, reasonText } from './run-error.ts';

interface SearchOptions extends FleetOptions, ListOptions {
  device?: string[];
  search?: string;
}

interface LogOptions extends SearchOptions {
  run?: number;
  follow?: boolean;
}

const followIntervalMs = 1_000;
const pageItemsMax = 1_000;
const runsMax = 2 ** 48 - 2;

/** A run with its record and its mails, printed as received: parsing would change large numbers in the payload (D11). */
async function showRun(name: string, run: number, options: FleetOptions): Promise<void> {
  const text = await connect(options).requestText('GET', actionUrl(options, name, 'runs', String(run)));
  const { error, sent, record, ...rest } = JSON.parse(text) as ShownRunDocument;
  const mails = sent.map(({ device, name: mail, mail_id, state }) =>
    [device, mail, mail_id, state ?? 'its receipt has expired'].filter((part) => part !== null).join(' '),
  );
  const shown = {
    ...rest,
    error: reasonText(error),
    sent: mails.join('\n'),
    payload: record === null ? 'The record is no longer in the log.' : record.payload,
  };
  process.stdout.write(`${options.json ? text : fields(shown)}\n`);
}

async function listRuns(
  name: string,
  run: number | undefined,
  options: SearchOptions & { outcome?: string },
): Promise<void> {
  if (run !== undefined) return showRun(name, run, options);
  const { device, outcome, search: text } = options;
  const path = actionUrl(options, name, 'runs');
  const runs = await connect(options).listAs<RunDocument>(path, options, { device, outcome, text });
  const columns = [
    'run',
    'ended_at',
    'device',
    'name',
    'version',
    'attempt',
    'outcome',
    'mails',
    'cpu_milliseconds',
    'error',
  ] as const;
  const items = runs.items.map((run) => ({ ...run, error: reasonInLine(run.error) }));
  print(options, runs, listText({ ...runs, items }, columns, 'No runs found.'));
}

function lineText({ at, run, device, text }: LogLineDocument): string {
  return printable(`${at}  ${device}  run ${run}  ${text}`);
}

async function listLogs(name: string, options: LogOptions): Promise<void> {
  const { device, run, search: text } = options;
  const client = connect(options);
  const path = actionUrl(options, name, 'logs');
  const wanted = { device, run, text };
  if (options.follow) return follow(client, path, wanted, options);
  const lines = await client.listAs<LogLineDocument>(path, options, wanted);
  const more = lines.next === null ? [] : [`There are more: continue with --after ${lines.next}`];
  const shown = lines.items.length === 0 ? ['No log lines found.'] : lines.items.map(lineText);
  print(options, lines, [...shown, ...more].join('\n'));
}

/** Prints new lines, oldest first, until the command is interrupted; with `--json` one document per line. */
async function follow(
  client: AdminClient,
  path: string,
  wanted: Parameters,
  options: LogOptions,
): Promise<void> {
  const newest = await client.requestAs<ListDocument<LogLineDocument>>('GET', `${path}?limit=1`);
  for (let last = newest.items[0]?.line ?? 0; ; await sleep(followIntervalMs)) {
    const lines = await linesSince(last, client, path, wanted);
    for (const line of lines) print(options, line, lineText(line));
    last = lines.at(-1)?.line ?? last;
  }
}

/** Reads pages from the newest back to the last line seen. */
async function linesSince(
  last: number,
  client: AdminClient,
  path: string,
  wanted: Parameters,
): Promise<LogLineDocument[]> {
  const found: LogLineDocument[] = [];
  let next: string | null = null;
  do {
    const query = { ...wanted, limit: pageItemsMax, ...(next !== null && { after: next }) };
    const page: ListDocument<LogLineDocument> = await client.requestAs('GET', path, { query });
    found.push(...page.items.filter(({ line }) => line > last));
    next = page.next;
  } while (next !== null && Number(next) > last);
  return found.reverse();
}

/** `action runs|logs|dead-letters|replay|drop`. */
export function addActionRunCommands(group: Command): void {
  withListOptions(
    fleetCommand(
      group,
      'runs <name>',
      'list attempts at runs, newest first, or show one with its record and its mails',
    ),
  )
    .argument('[run]', 'its number', integerOption(1, runsMax))
    .addOption(
      new Option('--outcome <outcome>', 'only with this outcome').choices(['done', 'failed', 'dead']),
    )
    .option('--device <id>', 'only for records of this device; repeat it for any of several', several)
    .option('--search <text>', 'only with this text in the error, schema or record id')
    .action(listRuns);

  withListOptions(fleetCommand(group, 'logs <name>', 'print what an action has logged, newest first'))
    .option('--run <n>', 'only of this run', integerOption(1, runsMax))
    .option('--device <id>', 'only for records of this device; repeat it for any of several', several)
    .option('--search <text>', 'only lines with this text')
    .option('--follow', 'print new lines as they come')
    .action(listLogs);

  addDeadLetterCommandsOf(group, {
    of: 'an action',
    pathOfAll: ({ fleet: fleet_id }, name) =>
      pathTo('/fleets/{fleet_id}/actions/{name}/dead-letters', { fleet_id, name }),
    pathOfOne: ({ fleet: fleet_id }, name, run) =>
      pathTo('/fleets/{fleet_id}/actions/{name}/dead-letters/{run}', { fleet_id, name, run }),
    argument: { name: 'run', description: 'its number', parse: integerOption(1, runsMax) },
    columns: ['run', 'failed_at', 'device', 'name', 'attempts', 'error'],
    shownOf: (letter, inList) => ({
      ...letter,
      error: inList ? reasonInLine(letter.error) : reasonText(letter.error),
    }),
    pageMax: pageItemsMax,
  });
}
