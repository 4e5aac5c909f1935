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

interface ActionDeadLetter {
  run: number;
  device: string;
  name: string;
  attempts: number;
  failed_at: string;
  error: RunError;
}

const followIntervalMs = 1_000;
const pageItemsMax = 1_000;
const runsMax = 2 ** 48 - 2;

/** The query parameters that are defined, as text. */
function wantedOf(query: Record<string, string | number | undefined>): Record<string, string> {
  const defined = Object.entries(query).filter(([, value]) => value !== undefined);
  return Object.fromEntries(defined.map(([key, value]) => [key, String(value)]));
}

/** An error as text for people. */
function reasonOf({ error }: { error: RunError | null }): string | null {
  return error && `${error.code}: ${error.msg}`;
}

/** Shortens errors to one line for a table; a single run is shown with its stack. */
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
  print(options, runs, listText(withReason(runs), columns, 'No runs found.'));
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
  const more = lines.next === null ? [] : [`There are more: continue with --after ${lines.next}`];
  const shown = lines.items.length === 0 ? ['No log lines found.'] : lines.items.map(lineText);
  print(options, lines, [...shown, ...more].join('\n'));
}

/** Prints new lines, oldest first, until the command is interrupted; with `--json` one document per line. */
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

/** Reads pages from the newest back to the last line seen. */
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

async function listLetters(
  name: string,
  run: number | undefined,
  options: ActionFleetOptions & ListOptions,
): Promise<void> {
  const client = connect(options);
  if (run === undefined) {
    const letters = await client.list<ActionDeadLetter>(actionUrl(options, name, 'dead-letters'), options);
    const columns = ['run', 'failed_at', 'device', 'name', 'attempts', 'error'] as const;
    print(options, letters, listText(withReason(letters), columns, 'This action has no dead letters.'));
    return;
  }
  // Printed as received: parsing would change large numbers in the payload (D11).
  const text = await client.requestText('GET', actionUrl(options, name, 'dead-letters', String(run)));
  const shown = JSON.parse(text) as ActionDeadLetter;
  process.stdout.write(`${options.json ? text : fields({ ...shown, error: reasonOf(shown) })}\n`);
}

/** Adds a command on one dead letter or, only with `--all`, on all of an action. */
function letterCommand(
  group: Command,
  verb: string,
  description: string,
  act: (path: string, options: ActionFleetOptions) => Promise<void>,
): void {
  fleetCommand(group, `${verb} <name>`, description)
    .argument('[run]', 'its number', integerOption(1, runsMax))
    .option('--all', 'all dead letters')
    .action(
      async (name: string, run: number | undefined, options: ActionFleetOptions & { all?: boolean }) => {
        if ((run === undefined) === (options.all === undefined)) {
          throw new OperatorError('Name one dead letter by its number, or all of them by --all.');
        }
        await act(
          actionUrl(options, name, 'dead-letters', ...(run === undefined ? [] : [String(run)])),
          options,
        );
      },
    );
}

/** `action runs|logs|dead-letters|replay|drop`. */
export function addActionRunCommands(group: Command): void {
  withListOptions(fleetCommand(group, 'runs <name>', 'list attempts at runs, newest first'))
    .addOption(
      new Option('--outcome <outcome>', 'only with this outcome').choices(['done', 'failed', 'dead']),
    )
    .option('--device <id>', 'only for records of this device')
    .option('--search <text>', 'only with this text in the error, schema or record id')
    .action(listRuns);

  withListOptions(fleetCommand(group, 'logs <name>', 'print what an action has logged, newest first'))
    .option('--run <n>', 'only of this run', integerOption(1, runsMax))
    .option('--device <id>', 'only for records of this device')
    .option('--search <text>', 'only lines with this text')
    .option('--follow', 'print new lines as they come')
    .action(listLogs);

  withListOptions(
    fleetCommand(
      group,
      'dead-letters <name>',
      'list the runs that were defined up, or show one with its payload',
    ),
  )
    .argument('[run]', 'its number', integerOption(1, runsMax))
    .action(listLetters);

  letterCommand(group, 'replay', 'replay dead letters, with all their attempts', async (path, options) => {
    const answer = await connect(options).request<{ replayed: number }>('POST', `${path}/replay`);
    print(options, answer, `Replaying ${answer.replayed} dead letters.`);
  });

  letterCommand(group, 'drop', 'drop dead letters', async (path, options) => {
    const answer = await connect(options).request<{ dropped: number }>('DELETE', path);
    print(options, answer, `Dropped ${answer.dropped} dead letters.`);
  });
}
