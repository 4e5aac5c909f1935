import { type Command, Option } from 'commander';
import { OperatorError } from '../../../core/errors.ts';
import { type List, pathOf } from '../../admin-client.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { readInput, readJson } from '../../input.ts';
import { fleetCommand, integerOption, type ListOptions, several, withListOptions } from '../../options.ts';
import { fields, listText, print } from '../../output.ts';

interface ForwarderFleetOptions extends ConnectionOptions {
  fleet: string;
}

/** Members of a forwarder that the commands use. */
interface ForwarderAnswer {
  name: string;
  type: string;
  url?: string;
  servers?: string[];
  filter: { kinds?: string[]; schemas?: string[] };
  enabled: boolean;
  state: string;
  behind: number;
  delivered: number;
  dead_letters: number;
  last_error: { at: string; msg: string } | null;
}

/** `rest` are path segments after the forwarder. */
function forwarderUrl({ fleet }: ForwarderFleetOptions, name: string, ...rest: string[]): string {
  return pathOf('fleets', fleet, 'forwarders', name, ...rest);
}

interface PutOptions extends ForwarderFleetOptions {
  webhook?: string;
  nats?: string[];
  subject?: string;
  atMostOnce?: boolean;
  kind?: string[];
  schema?: string[];
  start?: string;
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
  const { webhook, nats, subject, atMostOnce, kind, schema, start } = options;
  if ((webhook === undefined) === (nats === undefined)) {
    throw new OperatorError('Give one destination: --webhook URL or --nats SERVER.');
  }
  const hasFilter = kind !== undefined || schema !== undefined;
  const json = {
    type: webhook === undefined ? 'nats' : 'webhook',
    url: webhook,
    servers: nats,
    subject,
    delivery: atMostOnce ? 'at-most-once' : undefined,
    filter: hasFilter ? { kinds: kind, schemas: schema } : undefined,
    start,
    batch_records_max: options.batchRecords,
    linger_milliseconds: options.linger,
    timeout_seconds: options.timeout,
    ...(await secretsOf(options)),
  };
  const path = forwarderUrl(options, name);
  const answer = await connect(options).request<ForwarderAnswer & { secret: string | null }>('PUT', path, {
    json,
  });
  const lines = [`${answer.name} forwards to ${answer.url ?? (answer.servers ?? []).join(', ')}.`];
  if (answer.secret !== null) lines.push(`Signing secret: ${answer.secret}`, 'It is not shown again.');
  print(options, answer, lines.join('\n'));
}

async function rotate(name: string, options: ForwarderFleetOptions & { grace?: number }): Promise<void> {
  const path = forwarderUrl(options, name, 'rotate-secret');
  const json = { grace_seconds: options.grace };
  const answer = await connect(options).request<{ secret: string }>('POST', path, { json });
  print(options, answer, `Signing secret: ${answer.secret}\nIt is not shown again.`);
}

/** `forwarder put|rotate-secret`. */
function addForwarderPut(group: Command): void {
  fleetCommand(group, 'put <name>', 'create a forwarder, or change one; absent options stay as they are')
    .option('--webhook <url>', 'POST batches to this URL')
    .option('--nats <server>', 'publish to NATS, nats://HOST:PORT; repeatable', several)
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
    .option('--batch-records <n>', 'maximum records per batch', integerOption(1, 1_000))
    .option(
      '--linger <milliseconds>',
      'minimum time between two batches of a shard',
      integerOption(0, 60_000),
    )
    .option('--timeout <seconds>', 'timeout of one attempt', integerOption(1, 300))
    .option('--secrets <file>', 'JSON with secret, headers, credentials or tls; - is standard input')
    .option('--ca <file>', 'certificates to trust instead of the usual ones, PEM')
    .action(put);

  fleetCommand(group, 'rotate-secret <name>', 'rotate the signing secret; the old one stays valid for a time')
    .option(
      '--grace <seconds>',
      'how long the old secret is used too; default: one day',
      integerOption(0, 2_592_000),
    )
    .action(rotate);
}

interface DeadLetter {
  record_id: string;
  device_id: string;
  kind: string;
  schema: string;
  refused_at: string;
  replayed: boolean;
  reason: string;
}

async function listLetters(
  name: string,
  record: string | undefined,
  options: ForwarderFleetOptions & ListOptions,
): Promise<void> {
  const client = connect(options);
  if (record === undefined) {
    const letters = await client.list<DeadLetter>(
      forwarderUrl(options, name, 'dead-letters'),
      options,
      {},
      100,
    );
    const columns = ['record_id', 'refused_at', 'device_id', 'kind', 'schema', 'replayed', 'reason'] as const;
    print(options, letters, listText(letters, columns, 'This forwarder has no dead letters.'));
    return;
  }
  // Unchanged: parsing would change large numbers in the payload (D11).
  const text = await client.requestText('GET', forwarderUrl(options, name, 'dead-letters', record));
  process.stdout.write(`${options.json ? text : fields(JSON.parse(text) as DeadLetter)}\n`);
}

/** Adds a command on one dead letter or, with --all, on all: a missing id must not mean all. */
function letterCommand(
  group: Command,
  verb: string,
  description: string,
  act: (path: string, options: ForwarderFleetOptions) => Promise<void>,
): void {
  fleetCommand(group, `${verb} <name>`, description)
    .argument('[record]', 'its id')
    .option('--all', 'all dead letters')
    .action(
      async (
        name: string,
        record: string | undefined,
        options: ForwarderFleetOptions & { all?: boolean },
      ) => {
        if ((record === undefined) === (options.all === undefined)) {
          throw new OperatorError('Give the record id of one dead letter, or --all.');
        }
        const rest = record === undefined ? [] : [record];
        await act(forwarderUrl(options, name, 'dead-letters', ...rest), options);
      },
    );
}

/** `forwarder dead-letters|replay|drop`. */
function addForwarderLetterCommands(group: Command): void {
  withListOptions(
    fleetCommand(
      group,
      'dead-letters <name>',
      'list the dead letters of a forwarder, or show one with its payload',
    ),
  )
    .argument('[record]', 'its id')
    .action(listLetters);

  letterCommand(group, 'replay', 'send dead letters again', async (path, options) => {
    const answer = await connect(options).request<{ replayed: number }>('POST', `${path}/replay`);
    print(options, answer, `Dead letters queued to be sent again: ${answer.replayed}.`);
  });

  letterCommand(group, 'drop', 'drop dead letters', async (path, options) => {
    const answer = await connect(options).request<{ dropped: number }>('DELETE', path);
    print(options, answer, `Dead letters dropped: ${answer.dropped}.`);
  });
}

function rowOf({ last_error, ...forwarder }: ForwarderAnswer) {
  const { url, servers = [], filter } = forwarder;
  return {
    ...forwarder,
    to: url ?? servers.join(' '),
    filter: [...(filter.kinds ?? []), ...(filter.schemas ?? [])],
    last_error: last_error && `${last_error.at}  ${last_error.msg}`,
  };
}

/** `forwarder put|list|show|pause|resume|rotate-secret|delete|dead-letters|replay|drop`. */
export function addForwarderCommands(program: Command): void {
  const group = program
    .command('forwarder')
    .description('forward the records of a fleet to a webhook or NATS');

  addForwarderPut(group);

  fleetCommand(group, 'list', 'list the forwarders of a fleet and their state').action(
    async (options: ForwarderFleetOptions) => {
      const path = pathOf('fleets', options.fleet, 'forwarders');
      const { items, next } = await connect(options).request<List<ForwarderAnswer>>('GET', path);
      const columns = [
        'name',
        'type',
        'to',
        'state',
        'behind',
        'delivered',
        'dead_letters',
        'last_error',
      ] as const;
      const list = { items: items.map(rowOf), next };
      print(options, { items, next }, listText(list, columns, 'This fleet has no forwarders.'));
    },
  );

  fleetCommand(group, 'show <name>', 'show a forwarder and its state').action(
    async (name: string, options: ForwarderFleetOptions) => {
      const forwarder = await connect(options).request<ForwarderAnswer>('GET', forwarderUrl(options, name));
      const { to: _, ...rest } = rowOf(forwarder);
      print(options, forwarder, fields(rest));
    },
  );

  for (const enabled of [false, true]) {
    const description = enabled
      ? 'resume a forwarder'
      : 'pause a forwarder; it keeps its cursors, and sends records stored meanwhile once resumed';
    fleetCommand(group, `${enabled ? 'resume' : 'pause'} <name>`, description).action(
      async (name: string, options: ForwarderFleetOptions) => {
        const path = forwarderUrl(options, name);
        const forwarder = await connect(options).request<ForwarderAnswer>('PATCH', path, {
          json: { enabled },
        });
        print(options, forwarder, `${forwarder.name} is ${forwarder.enabled ? 'resumed' : 'paused'}.`);
      },
    );
  }

  fleetCommand(group, 'delete <name>', 'delete a forwarder with its cursors and dead letters').action(
    async (name: string, options: ForwarderFleetOptions) => {
      await connect(options).request('DELETE', forwarderUrl(options, name));
      print(options, { ok: true }, 'The forwarder is deleted.');
    },
  );

  addForwarderLetterCommands(group);
}
