import { type Command, Option } from 'commander';
import { OperatorError } from '../../../core/errors.ts';
import { connect } from '../../connection.ts';
import { readInput, readJson } from '../../input.ts';
import { fleetCommand, integerOption, several } from '../../options.ts';
import { print } from '../../output.ts';
import { type ForwarderAnswer, type ForwarderFleetOptions, forwarderUrl } from './forwarder-path.ts';

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
export function addForwarderPut(group: Command): void {
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
