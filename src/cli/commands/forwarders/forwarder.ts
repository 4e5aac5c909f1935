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

/** What the commands read of one. */
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

/** `rest` is what comes after the forwarder in the path. */
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

/** Secrets come from a file: what is on a command line, every user of the machine can see. */
async function secretsOf({ secrets, ca }: PutOptions): Promise<object> {
  const given = secrets === undefined ? {} : await readJson(secrets);
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new OperatorError(`${secrets} must hold one JSON object.`);
  }
  if (ca === undefined) return given;
  const { tls } = given as { tls?: object };
  return { ...given, tls: { ...tls, ca: (await readInput(ca)).toString('utf8') } };
}

async function put(name: string, options: PutOptions): Promise<void> {
  const { webhook, nats, subject, atMostOnce, kind, schema, start } = options;
  if ((webhook === undefined) === (nats === undefined)) {
    throw new OperatorError('Say where to: --webhook URL or --nats SERVER.');
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
  const made = await connect(options).request<ForwarderAnswer & { secret: string | null }>('PUT', path, {
    json,
  });
  const lines = [`${made.name} forwards to ${made.url ?? (made.servers ?? []).join(', ')}.`];
  if (made.secret !== null)
    lines.push(`Its batches are signed with ${made.secret}`, 'This is not shown again.');
  print(options, made, lines.join('\n'));
}

async function rotate(name: string, options: ForwarderFleetOptions & { grace?: number }): Promise<void> {
  const path = forwarderUrl(options, name, 'rotate-secret');
  const json = { grace_seconds: options.grace };
  const answer = await connect(options).request<{ secret: string }>('POST', path, { json });
  print(options, answer, `Its batches are signed with ${answer.secret}\nThis is not shown again.`);
}

/** `forwarder put|rotate-secret`. */
function addForwarderPut(group: Command): void {
  fleetCommand(group, 'put <name>', 'make a forwarder, or change one; what is not given stays')
    .option('--webhook <url>', 'POST batches there')
    .option('--nats <server>', 'publish to NATS, nats://HOST:PORT; may be given several times', several)
    .option('--subject <template>', 'of NATS, with {fleet_id}, {device_id}, {kind} and {schema}')
    .option('--at-most-once', 'publish without JetStream: what the NATS server loses is lost')
    .option('--kind <kind>', 'records of this kind alone, message say; may be given several times', several)
    .option('--schema <name>', 'records of this schema alone; may be given several times', several)
    .addOption(
      new Option(
        '--start <where>',
        'where a new one begins in the log; now, unless it says otherwise',
      ).choices(['now', 'beginning']),
    )
    .option('--batch-records <n>', 'records of one batch at most', integerOption(1, 1_000))
    .option('--linger <milliseconds>', 'least time between two batches of a shard', integerOption(0, 60_000))
    .option('--timeout <seconds>', 'of one attempt', integerOption(1, 300))
    .option('--secrets <file>', 'JSON with secret, headers, credentials or tls; - is standard input')
    .option('--ca <file>', 'certificates to trust instead of the usual ones, PEM')
    .action(put);

  fleetCommand(group, 'rotate-secret <name>', 'sign with a new secret, and with the old one too for a time')
    .option('--grace <seconds>', 'that time; a day, unless it says otherwise', integerOption(0, 2_592_000))
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
  // As it came: parsing would change large numbers in the payload (D11).
  const text = await client.requestText('GET', forwarderUrl(options, name, 'dead-letters', record));
  process.stdout.write(`${options.json ? text : fields(JSON.parse(text) as DeadLetter)}\n`);
}

/** A command on one dead letter, or on all of a forwarder: not on all because an id was forgotten. */
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
          throw new OperatorError('Name one dead letter by its record id, or all of them by --all.');
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
      'list the records that were refused, or show one with its payload',
    ),
  )
    .argument('[record]', 'its id')
    .action(listLetters);

  letterCommand(group, 'replay', 'send dead letters once more', async (path, options) => {
    const answer = await connect(options).request<{ replayed: number }>('POST', `${path}/replay`);
    print(options, answer, `Dead letters that are sent once more: ${answer.replayed}.`);
  });

  letterCommand(group, 'drop', 'throw dead letters away', async (path, options) => {
    const answer = await connect(options).request<{ dropped: number }>('DELETE', path);
    print(options, answer, `Dead letters that are thrown away: ${answer.dropped}.`);
  });
}

function shown({ last_error, ...forwarder }: ForwarderAnswer) {
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
    .description('send the records of a fleet on, as they are stored');

  addForwarderPut(group);

  fleetCommand(group, 'list', 'list the forwarders of a fleet and how each is doing').action(
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
      const list = { items: items.map(shown), next };
      print(options, { items, next }, listText(list, columns, 'This fleet has no forwarders.'));
    },
  );

  fleetCommand(group, 'show <name>', 'show a forwarder and how it is doing').action(
    async (name: string, options: ForwarderFleetOptions) => {
      const forwarder = await connect(options).request<ForwarderAnswer>('GET', forwarderUrl(options, name));
      const { to: _, ...rest } = shown(forwarder);
      print(options, forwarder, fields(rest));
    },
  );

  for (const enabled of [false, true]) {
    const description = enabled
      ? 'have a forwarder go on where it was'
      : 'stop a forwarder; it keeps its place, and what is stored meanwhile waits for it';
    fleetCommand(group, `${enabled ? 'resume' : 'pause'} <name>`, description).action(
      async (name: string, options: ForwarderFleetOptions) => {
        const path = forwarderUrl(options, name);
        const forwarder = await connect(options).request<ForwarderAnswer>('PATCH', path, {
          json: { enabled },
        });
        print(options, forwarder, `${forwarder.name} ${forwarder.enabled ? 'goes on' : 'is paused'}.`);
      },
    );
  }

  fleetCommand(group, 'delete <name>', 'delete a forwarder with its place and its dead letters').action(
    async (name: string, options: ForwarderFleetOptions) => {
      await connect(options).request('DELETE', forwarderUrl(options, name));
      print(options, { ok: true }, 'The forwarder is deleted.');
    },
  );

  addForwarderLetterCommands(group);
}
