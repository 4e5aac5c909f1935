import { extname } from 'node:path';
import type { Command } from 'commander';
import type {
  ActionDraftBody,
  ActionTestDocument,
  DeployedActionDocument,
} from '../../../contract/action.ts';
import type { TrialDocument } from '../../../contract/action-run.ts';
import { below } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import { RefusedError } from '../../admin-client.ts';
import { connect } from '../../connection.ts';
import { readInput, readJson } from '../../input.ts';
import { type FleetOptions, fleetCommand, integerOption, several } from '../../options.ts';
import { cellText, print, printable, printableLines, table } from '../../output.ts';
import { actionPath, triggerOf } from './action-path.ts';

interface PutOptions extends FleetOptions {
  on?: string[];
  device?: string[];
  tag?: string[];
  where?: string;
  test?: string;
  runsPerSecond?: number;
  disabled?: boolean;
  force?: boolean;
  reset?: boolean;
}

interface TestOptions extends FleetOptions {
  file?: string;
  on?: string[];
}

const languages: Readonly<Record<string, ActionDraftBody['language']>> = {
  '.js': 'javascript',
  '.mjs': 'javascript',
  '.ts': 'typescript',
  '.mts': 'typescript',
};

/** @throws OperatorError if the file name does not tell the language. */
async function readCode(file: string): Promise<Pick<ActionDraftBody, 'source' | 'language'>> {
  const language = languages[extname(file)];
  if (language === undefined) {
    throw new OperatorError(`${file} has no known language. Name it .js, .mjs, .ts or .mts.`);
  }
  return { language, source: (await readInput(file)).toString('utf8') };
}

/** Absent fields keep their value in the current version; with `--reset` none is absent. */
async function filterOf({ device, tag, where, reset }: PutOptions) {
  const absent = reset ? null : undefined;
  // The server checks that it is a schema.
  const payload = where === undefined ? absent : ((await readJson(where)) as Record<string, unknown>);
  const filter = { devices: device ?? absent, tags: tag ?? absent, payload };
  return Object.values(filter).every((value) => value === undefined) ? undefined : filter;
}

async function testsOf({ test, reset }: PutOptions): Promise<ActionTestDocument[] | undefined> {
  if (test === undefined) return reset ? [] : undefined;
  // The server checks each.
  const tests = (await readJson(test)) as ActionTestDocument | ActionTestDocument[];
  return Array.isArray(tests) ? tests : [tests];
}

async function put(name: string, file: string, options: PutOptions): Promise<void> {
  const json = {
    ...(await readCode(file)),
    on: options.on?.map(triggerOf) ?? (options.reset ? [] : undefined),
    filter: await filterOf(options),
    tests: await testsOf(options),
    runs_per_second_max: options.runsPerSecond ?? (options.reset ? null : undefined),
    enabled: options.disabled ? false : options.reset ? true : undefined,
    force: options.force,
  };
  const path = actionPath(options, name);
  const deployed = await connect(options)
    .request('PUT', path, { json })
    .catch((error: unknown) => {
      throw withPlaces(error, file);
    });
  print(options, deployed, deployedText(deployed));
}

const place = /^\d+:\d+$/;

/** Type errors as a compiler prints them, each under its place in the file. */
function withPlaces(error: unknown, file: string): unknown {
  if (!(error instanceof RefusedError) || !error.fields.some(({ path }) => place.test(path))) return error;
  const lines = error.fields.map(({ path, msg }) => `${file}:${path} ${printable(msg)}`);
  return new OperatorError([error.summary, ...lines].join('\n'));
}

function deployedText({ name, version, enabled, tests }: DeployedActionDocument): string {
  const failed = tests.filter(({ passed }) => !passed);
  const lines = [
    `Version ${version} of ${name} is deployed${enabled ? '' : ', and disabled'}.`,
    ...(tests.length === 0 ? [] : [`${tests.length - failed.length} of ${tests.length} tests passed.`]),
    ...failed.map(({ test, reason }) => printableLines(`Test ${test} failed: ${reason}`)),
  ];
  return lines.join('\n');
}

async function test(name: string, recordFile: string, options: TestOptions): Promise<void> {
  if (options.on !== undefined && options.file === undefined) {
    throw new OperatorError('--on needs --file. What is deployed has its own.');
  }
  const json = {
    ...inputOf(await readJson(recordFile)),
    draft:
      options.file === undefined
        ? undefined
        : { ...(await readCode(options.file)), on: options.on?.map(triggerOf) },
  };
  const path = below(actionPath(options, name), '/test', {});
  const trial = await connect(options).request('POST', path, { json });
  if (trial.error !== null || trial.reason !== null) process.exitCode = 1;
  print(options, trial, trialText(trial));
}

type TestRecord = NonNullable<ActionTestDocument['record']>;

/** The input to try an action on: a test has its record, or several, as a member. The server checks the rest of it. */
function inputOf(content: unknown): { record: TestRecord } | { test: ActionTestDocument } {
  const isTest =
    typeof content === 'object' && content !== null && ('record' in content || 'records' in content);
  return isTest ? { test: content as ActionTestDocument } : { record: content as TestRecord };
}

function trialText({ error, reason, records, mails, state, log, ...times }: TrialDocument): string {
  const mailRows = mails.map(({ record, device, name, payload, ttl_seconds }) =>
    [...(records > 1 ? [record] : []), device, name, ttl_seconds, payload].map(cellText),
  );
  const stateRows = state.map(({ key, removed, value }) => [key, removed ? '-' : JSON.stringify(value)]);
  const spent = `${times.cpu_milliseconds.toFixed(1)} ms of CPU time, ${times.wall_milliseconds.toFixed(1)} ms in all`;
  return [
    mails.length === 0
      ? 'It would send no mail.'
      : `It would send:\n${table([...(records > 1 ? ['record'] : []), 'device', 'name', 'ttl_seconds', 'payload'], mailRows)}`,
    ...(state.length === 0 ? [] : [`It would store:\n${table(['key', 'value'], stateRows)}`]),
    ...(log.length === 0 ? [] : [`It logged:\n${log.map(printable).join('\n')}`]),
    verdictText({ error, reason }, spent),
  ].join('\n');
}

function verdictText({ error, reason }: Pick<TrialDocument, 'error' | 'reason'>, spent: string): string {
  if (reason !== null) return printableLines(`The test failed after ${spent}: ${reason}`);
  if (error === null) return `It succeeded: ${spent}.`;
  return printableLines(`It failed after ${spent}: ${error.code}: ${error.msg}`);
}

const onDescription = 'message schema that triggers it, or datapoint:NAME, reply:NAME; repeatable';

/** `action put`. */
export function addActionPut(group: Command): void {
  fleetCommand(group, 'put <name> <file>', 'deploy a version; absent options stay as in the current one')
    .option('--on <schema>', onDescription, several)
    .option('--device <id>', 'only records of this device; repeatable', several)
    .option('--tag <tag>', 'only records of devices with this tag; repeatable', several)
    .option('--where <file>', 'only records whose payload matches this JSON Schema')
    .option('--test <file>', 'a test or a list of tests, as JSON, all of which must pass')
    .option('--runs-per-second <n>', 'rate limit, instead of the configured one', integerOption(1, 1_000_000))
    .option('--disabled', 'deploy it disabled')
    .option('--force', 'deploy it even if a test fails or its types are wrong')
    .option('--reset', 'reset absent options to their defaults')
    .action(put);
}

/** `action test`. */
export function addActionTest(group: Command): void {
  fleetCommand(
    group,
    'test <name> <record>',
    'run an action on a record or a test in a JSON file and print what it would do, without sending or storing anything',
  )
    .option('--file <file>', 'run this code instead of the deployed version')
    .option('--on <schema>', `with --file: ${onDescription}`, several)
    .action(test);
}
