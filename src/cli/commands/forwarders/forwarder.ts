import { type Command, Option } from 'commander';
import { forwarderColumns, refusedRecordColumns } from '../../../contract/columns/reader.ts';
import { anyDestination, destinationAddresses } from '../../../contract/destination-text.ts';
import type { ForwarderBody, ForwarderDocument } from '../../../contract/forwarder.ts';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import { connect } from '../../connection.ts';
import { readInput, readJson } from '../../input.ts';
import { secondsOption } from '../../moment.ts';
import { type FleetOptions, fleetCommand, integerOption, option, several } from '../../options.ts';
import { fields, print } from '../../output.ts';
import { addDeadLetterCommandsOf } from '../dead-letters-of.ts';
import { addPauseCommands, listCommand, requestCommand } from '../declared.ts';

function forwarderPath({ fleet: fleet_id }: FleetOptions, name: string) {
  return pathTo('/fleets/{fleet_id}/forwarders/{name}', { fleet_id, name });
}

/** The option that gives the destination of each kind, and the member of the request that it becomes. */
const destinationOptions = {
  webhook: {
    usage: '--webhook URL',
    option: new Option('--webhook <url>', 'POST batches to this URL'),
    member: 'url',
  },
  nats: {
    usage: '--nats SERVER',
    option: option('--nats <server>', 'publish to NATS, nats://HOST:PORT; repeatable', several),
    member: 'servers',
  },
} satisfies Record<ForwarderBody['type'], { usage: string; option: Option; member: keyof ForwarderBody }>;
type DestinationType = keyof typeof destinationOptions;
const destinationTypes = Object.keys(destinationOptions) as DestinationType[];

type Filter = NonNullable<ForwarderBody['filter']>;

interface PutOptions extends FleetOptions, Partial<Record<DestinationType, string | string[]>> {
  subject?: string;
  atMostOnce?: boolean;
  kind?: NonNullable<Filter['kinds']>;
  schema?: string[];
  start?: NonNullable<ForwarderBody['start']>;
  batchRecords?: number;
  linger?: number;
  timeout?: number;
  secrets?: string;
  ca?: string;
}

/** Reads secrets from a file: a command line is visible to every user of the machine. */
async function secretsOf({ secrets, ca }: PutOptions): Promise<object> {
  const input = secrets === undefined ? {} : await readJson(secrets);
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new OperatorError(`${secrets} must hold one JSON object.`);
  }
  if (ca === undefined) return input;
  const { tls } = input as { tls?: object };
  return { ...input, tls: { ...tls, ca: (await readInput(ca)).toString('utf8') } };
}

async function put(name: string, options: PutOptions): Promise<void> {
  const { subject, atMostOnce, kind, schema, start } = options;
  const [type, second] = destinationTypes.filter((one) => options[one] !== undefined);
  if (type === undefined || second !== undefined) {
    const usages = Object.values(destinationOptions).map(({ usage }) => usage);
    throw new OperatorError(`Give one destination: ${usages.join(' or ')}.`);
  }
  const hasFilter = kind !== undefined || schema !== undefined;
  const answer = await connect(options).request('PUT', forwarderPath(options, name), {
    json: {
      type,
      [destinationOptions[type].member]: options[type],
      subject,
      delivery: atMostOnce ? 'at-most-once' : undefined,
      filter: hasFilter ? { ...(kind && { kinds: kind }), ...(schema && { schemas: schema }) } : undefined,
      start,
      batch_records_max: options.batchRecords,
      linger_milliseconds: options.linger,
      timeout_seconds: options.timeout,
      ...(await secretsOf(options)),
    },
  });
  const lines = [`${answer.name} forwards to ${destinationAddresses(answer).join(', ')}.`];
  if (answer.secret !== null) lines.push(`Signing secret: ${answer.secret}`, 'It is not shown again.');
  if (answer.warning !== null) lines.push(`Warning: ${answer.warning}. The forwarder goes on trying.`);
  else lines.push(`Test it with: fleetpost forwarder test ${answer.name}`);
  print(options, answer, lines.join('\n'));
}

/** Prints what came of a test event. @throws OperatorError unless it was delivered. */
async function test(name: string, options: FleetOptions): Promise<void> {
  const trial = await connect(options).request('POST', below(forwarderPath(options, name), '/test', {}));
  const { result, msg, milliseconds } = trial;
  const text = `The test event was ${result === 'failed' ? 'not delivered' : result} (${milliseconds} ms).`;
  print(options, trial, text);
  if (msg !== null) throw new OperatorError(msg);
}

/** `forwarder put|test|rotate-secret`. */
function addForwarderPut(group: Command): void {
  const command = fleetCommand(
    group,
    'put <name>',
    'create a forwarder, or change one; absent options stay as they are',
  );
  for (const { option } of Object.values(destinationOptions)) command.addOption(option);
  command
    .option('--subject <template>', 'NATS subject with {fleet_id}, {device_id}, {kind} and {schema}')
    .option('--at-most-once', 'publish without JetStream, so that NATS may lose records')
    .option('--kind <kind>', 'forward only this kind, like message; repeatable', several)
    .option('--schema <name>', 'forward only this schema; repeatable', several)
    .addOption(
      new Option('--start <where>', 'where a new forwarder begins in the log; default: latest').choices([
        'earliest',
        'latest',
      ]),
    )
    .option('--batch-records <n>', 'maximum records per batch; default: 100', integerOption(1, 1_000))
    .option(
      '--linger <milliseconds>',
      'minimum time between two batches of a shard; default: 0',
      integerOption(0, 60_000),
    )
    .option('--timeout <seconds>', 'timeout of one attempt; default: 30', secondsOption(1, 300))
    .option('--secrets <file>', 'JSON with secret, headers, credentials or tls; - is standard input')
    .option('--ca <file>', 'certificates to trust instead of the usual ones, PEM')
    .action(put);

  fleetCommand(group, 'test <name>', 'send one test event, and print what came of it').action(test);

  requestCommand(group, 'POST', '/fleets/{fleet_id}/forwarders/{name}/rotate-secret', {
    usage: 'rotate-secret <name>',
    does: 'rotate the signing secret; the old one stays valid for a time',
    body: {
      grace_seconds: option(
        '--grace <seconds>',
        'how long the old secret is used too; default: one day',
        secondsOption(0, 2_592_000),
      ),
    },
    done: ({ secret }) => `Signing secret: ${secret}\nIt is not shown again.`,
  });
}

function shownText({ last_error, filter, ...forwarder }: ForwarderDocument): string {
  const { at, msg, recovered_at = null } = last_error ?? {};
  return fields({
    ...forwarder,
    filter: [...(filter.kinds ?? []), ...(filter.schemas ?? [])],
    last_error: last_error && `${at}  ${msg}${recovered_at === null ? '' : ` Recovered at ${recovered_at}.`}`,
  });
}

/** `forwarder put|test|list|show|pause|resume|rotate-secret|delete|dead-letters|replay|drop`. */
export function addForwarderCommands(program: Command): void {
  const group = program
    .command('forwarder')
    .description(`forward the records of a fleet to ${anyDestination}`);

  addForwarderPut(group);

  listCommand(group, '/fleets/{fleet_id}/forwarders', {
    does: 'list the forwarders of a fleet and their state',
    columns: forwarderColumns,
    empty: 'This fleet has no forwarders.',
    isWhole: true,
  });

  const one = '/fleets/{fleet_id}/forwarders/{name}';
  requestCommand(group, 'GET', one, {
    usage: 'show <name>',
    does: 'show a forwarder and its state',
    done: shownText,
  });
  addPauseCommands(group, one, {
    of: 'a forwarder',
    meanwhile: 'it keeps its cursors, and sends records stored meanwhile once resumed',
  });
  requestCommand(group, 'DELETE', one, {
    usage: 'delete <name>',
    does: 'delete a forwarder with its cursors and dead letters',
    done: 'The forwarder is deleted.',
  });

  addDeadLetterCommandsOf(group, {
    of: 'a forwarder',
    path: '/fleets/{fleet_id}/forwarders/{name}/dead-letters',
    argument: { name: 'record', description: 'the id of its record' },
    columns: refusedRecordColumns,
    nameOf: ({ record_id }) => record_id,
    pageMax: 100,
  });
}
