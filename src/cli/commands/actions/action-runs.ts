import { type Command, Option } from 'commander';
import type { LogLineDocument, RunDocument, ShownRunDocument } from '../../../contract/action-run.ts';
import { deadRunColumns, runColumns, runErrorText } from '../../../contract/columns/action.ts';
import { below, type Path, type QueryAt } from '../../../contract/routes/path.ts';
import { sleep } from '../../../core/async.ts';
import type { AdminClient } from '../../admin-client.ts';
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
import { actionPath } from './action-path.ts';

interface SearchOptions extends FleetOptions, ListOptions {
  device?: string[];
  search?: string;
}

interface LogOptions extends SearchOptions {
  run?: number;
  follow?: boolean;
}

type LogTemplate = '/fleets/{fleet_id}/actions/{name}/logs';

const followIntervalMs = 1_000;
const pageItemsMax = 1_000;
const runsMax = 2 ** 48 - 2;

/** A run with its record and its mails, printed as received: parsing would change large numbers in the payload (D11). */
async function showRun(name: string, run: number, options: FleetOptions): Promise<void> {
  const path = below(actionPath(options, name), '/runs/{run}', { run });
  const text = await connect(options).requestText('GET', path);
  const { error, sent, record, ...rest } = JSON.parse(text) as ShownRunDocument;
  const mails = sent.map(({ device, name: mail, mail_id, state }) =>
    [device, mail, mail_id, state ?? 'its receipt has expired'].filter((part) => part !== null).join(' '),
  );
  const shown = {
    ...rest,
    error: runErrorText(error),
    sent: mails.join('\n'),
    payload: record === null ? 'The record is no longer in the log.' : record.payload,
  };
  process.stdout.write(`${options.json ? text : fields(shown)}\n`);
}

async function listRuns(
  name: string,
  run: number | undefined,
  options: SearchOptions & { outcome?: RunDocument['outcome'] },
): Promise<void> {
  if (run !== undefined) return showRun(name, run, options);
  const { device, outcome, search: text } = options;
  const path = below(actionPath(options, name), '/runs', {});
  const runs = await connect(options).list(path, options, { device, outcome, text });
  print(options, runs, listText(runs, runColumns, 'No runs found.'));
}

function lineText({ at, run, device, text }: LogLineDocument): string {
  return printable(`${at}  ${device}  run ${run}  ${text}`);
}

async function listLogs(name: string, options: LogOptions): Promise<void> {
  const { device, run, search: text } = options;
  const client = connect(options);
  const path = below(actionPath(options, name), '/logs', {});
  const wanted = { device, run, text };
  if (options.follow) return follow(client, path, wanted, options);
  const lines = await client.list(path, options, wanted);
  const more = lines.next === null ? [] : [`There are more: continue with --after ${lines.next}`];
  const shown = lines.items.length === 0 ? ['No log lines found.'] : lines.items.map(lineText);
  print(options, lines, [...shown, ...more].join('\n'));
}

/** Prints new lines, oldest first, until the command is interrupted; with `--json` one document per line. */
async function follow(
  client: AdminClient,
  path: Path<LogTemplate>,
  wanted: QueryAt<'GET', LogTemplate>,
  options: LogOptions,
): Promise<void> {
  const newest = await client.request('GET', path, { query: { limit: 1 } });
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
  path: Path<LogTemplate>,
  wanted: QueryAt<'GET', LogTemplate>,
): Promise<LogLineDocument[]> {
  const found: LogLineDocument[] = [];
  for await (const { items, next } of client.pages(path, wanted)) {
    found.push(...items.filter(({ line }) => line > last));
    if (next !== null && Number(next) <= last) break;
  }
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
    path: '/fleets/{fleet_id}/actions/{name}/dead-letters',
    argument: { name: 'run', description: 'its number', parse: integerOption(1, runsMax) },
    columns: deadRunColumns,
    nameOf: ({ run }) => run,
    shownOf: (letter) => ({ ...letter, error: runErrorText(letter.error) }),
    pageMax: pageItemsMax,
  });
}
