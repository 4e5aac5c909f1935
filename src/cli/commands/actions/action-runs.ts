import { type Command, Option } from 'commander';
import { sleep } from '../../../core/async.ts';
import { OperatorError } from '../../../core/errors.ts';
import type { AdminClient, List } from '../../admin-client.ts';
import { connect } from '../../connection.ts';
import { fleetCommand, integerOption, type ListOptions, withListOptions } from '../../options.ts';
import { fields, listText, print, printable } from '../../output.ts';
import { type ActionFleetOptions, actionUrl } from './action-path.ts';

interface SearchOptions extends ActionFleetOptions, ListOptions {
  device?: string;
  search?: string;
}

interface LogOptions extends SearchOptions {
  run?: number;
  follow?: boolean;
}

interface RunError {
  code: string;
  msg: string;
}

interface Run {
  run: number;
  device: string;
  name: string;
  version: number;
  attempt: number;
  outcome: string;
  mails: number;
  cpu_milliseconds: number;
  ended_at: string;
  error: RunError | null;
}

interface LogLine {
  line: number;
  run: number;
  device: string;
  at: string;
  text: string;
}

interface ParkedRun {
  run: number;
  device: string;
  name: string;
  attempts: number;
  parked_at: string;
  error: RunError;
}

const followIntervalMs = 1_000;
const pageItemsMax = 1_000;
const runsMax = 2 ** 48 - 2;

/** What is wanted, as the query has it. */
function wantedOf(query: Record<string, string | number | undefined>): Record<string, string> {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([key, value]) => [key, String(value)]));
}

/** For people. */
function reasonOf({ error }: { error: RunError | null }): string | null {
  return error && `${error.code}: ${error.msg}`;
}

/** For a table: a stack has lines of its own, which one run by itself is shown with. */
function withReason<T extends { error: RunError | null }>({ items, next }: List<T>) {
  return { items: items.map((item) => ({ ...item, error: reasonOf(item)?.split('\n', 1)[0] })), next };
}

async function listRuns(name: string, options: SearchOptions & { outcome?: string }): Promise<void> {
  const { device, outcome, search: text } = options;
  const path = actionUrl(options, name, 'runs');
  const runs = await connect(options).list<Run>(path, options, wantedOf({ device, outcome, text }));
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
  print(options, runs, listText(withReason(runs), columns, 'There are no such runs.'));
}

function lineText({ at, run, device, text }: LogLine): string {
  return printable(`${at}  ${device}  run ${run}  ${text}`);
}

async function listLogs(name: string, options: LogOptions): Promise<void> {
  const { device, run, search: text } = options;
  const client = connect(options);
  const path = actionUrl(options, name, 'logs');
  const wanted = wantedOf({ device, run, text });
  if (options.follow) return follow(client, path, wanted, options);
  const lines = await client.list<LogLine>(path, options, wanted);
  const more = lines.next === null ? [] : [`There is more: go on with --after ${lines.next}`];
  const shown = lines.items.length === 0 ? ['There are no such lines.'] : lines.items.map(lineText);
  print(options, lines, [...shown, ...more].join('\n'));
}

/** Lines from now on, oldest first, until the command is ended: with `--json` a document each. */
async function follow(
  client: AdminClient,
  path: string,
  wanted: Record<string, string>,
  options: LogOptions,
): Promise<void> {
  const newest = await client.request<List<LogLine>>('GET', `${path}?limit=1`);
  for (let last = newest.items[0]?.line ?? 0; ; await sleep(followIntervalMs)) {
    const lines = await linesSince(last, client, path, wanted);
    for (const line of lines) print(options, line, lineText(line));
    last = lines.at(-1)?.line ?? last;
  }
}

/** Pages go from the newest backwards, as far as the last one that was seen. */
async function linesSince(
  last: number,
  client: AdminClient,
  path: string,
  wanted: Record<string, string>,
): Promise<LogLine[]> {
  const found: LogLine[] = [];
  let next: string | null = null;
  do {
    const query = new URLSearchParams({ ...wanted, limit: String(pageItemsMax) });
    if (next !== null) query.set('after', next);
    const page: List<LogLine> = await client.request('GET', `${path}?${query}`);
    found.push(...page.items.filter(({ line }) => line > last));
    next = page.next;
  } while (next !== null && Number(next) > last);
  return found.reverse();
}

async function listParked(
  name: string,
  run: number | undefined,
  options: ActionFleetOptions & ListOptions,
): Promise<void> {
  const client = connect(options);
  if (run === undefined) {
    const parked = await client.list<ParkedRun>(actionUrl(options, name, 'parked'), options);
    const columns = ['run', 'parked_at', 'device', 'name', 'attempts', 'error'] as const;
    print(options, parked, listText(withReason(parked), columns, 'This action has no parked runs.'));
    return;
  }
  // As it came: parsing would change large numbers in the payload (D11).
  const text = await client.requestText('GET', actionUrl(options, name, 'parked', String(run)));
  const shown = JSON.parse(text) as ParkedRun;
  process.stdout.write(`${options.json ? text : fields({ ...shown, error: reasonOf(shown) })}\n`);
}

/** A command on one parked run, or on all of an action: not on all because a number was forgotten. */
function parkedCommand(
  group: Command,
  verb: string,
  description: string,
  act: (path: string, options: ActionFleetOptions) => Promise<void>,
): void {
  fleetCommand(group, `${verb} <name>`, description)
    .argument('[run]', 'its number', integerOption(1, runsMax))
    .option('--all', 'all that are parked')
    .action(
      async (name: string, run: number | undefined, options: ActionFleetOptions & { all?: boolean }) => {
        if ((run === undefined) === (options.all === undefined)) {
          throw new OperatorError('Name one parked run by its number, or all of them by --all.');
        }
        await act(actionUrl(options, name, 'parked', ...(run === undefined ? [] : [String(run)])), options);
      },
    );
}

/** `action runs|logs|parked|retry|drop`. */
export function addActionRunCommands(group: Command): void {
  withListOptions(fleetCommand(group, 'runs <name>', 'list attempts at runs, newest first'))
    .addOption(new Option('--outcome <outcome>', 'with this end').choices(['done', 'failed', 'parked']))
    .option('--device <id>', 'for records of this device')
    .option('--search <text>', 'that have this in the error or the record')
    .action(listRuns);

  withListOptions(fleetCommand(group, 'logs <name>', 'print what an action has logged, newest first'))
    .option('--run <n>', 'in this run', integerOption(1, runsMax))
    .option('--device <id>', 'for records of this device')
    .option('--search <text>', 'lines that have this in them')
    .option('--follow', 'print lines from now on, as they come')
    .action(listLogs);

  withListOptions(
    fleetCommand(group, 'parked <name>', 'list the runs that were given up, or show one with its payload'),
  )
    .argument('[run]', 'its number', integerOption(1, runsMax))
    .action(listParked);

  parkedCommand(group, 'retry', 'try parked runs again, with all their attempts', async (path, options) => {
    const answer = await connect(options).request<{ retried: number }>('POST', `${path}/retry`);
    print(options, answer, `Parked runs that are tried again: ${answer.retried}.`);
  });

  parkedCommand(group, 'drop', 'throw parked runs away', async (path, options) => {
    const answer = await connect(options).request<{ dropped: number }>('DELETE', path);
    print(options, answer, `Parked runs that are thrown away: ${answer.dropped}.`);
  });
}
