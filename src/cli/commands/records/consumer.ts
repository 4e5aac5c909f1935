import type { Command } from 'commander';
import { type List, pathOf } from '../../admin-client.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { fleetCommand, integerOption, several } from '../../options.ts';
import { fields, listText, print, printable, table } from '../../output.ts';

interface FleetOptions extends ConnectionOptions {
  fleet: string;
}

interface Consumer {
  name: string;
  created_at: string;
  kinds: string[];
  schemas: string[];
  lease_seconds: number;
  behind: number;
  seconds_behind: number;
  lost: number;
  shards: {
    shard: number;
    position: number;
    behind: number;
    lost: number;
    batch: { worker: string; records: number; expires_at: string } | null;
  }[];
}

interface CreateOptions extends FleetOptions {
  kind?: string[];
  schema?: string[];
  start: string;
  leaseSeconds?: number;
}

function consumerPath({ fleet }: FleetOptions, name: string, ...rest: string[]): string {
  return pathOf('fleets', fleet, 'consumers', name, ...rest);
}

async function create(name: string, options: CreateOptions): Promise<void> {
  const { kind: kinds, schema: schemas, start, leaseSeconds: lease_seconds } = options;
  const json = { kinds, schemas, start, lease_seconds };
  const consumer = await connect(options).request<Consumer>('PUT', consumerPath(options, name), { json });
  print(options, consumer, `Consumer ${consumer.name} is there, ${consumer.behind} positions behind.`);
}

async function show(name: string, options: FleetOptions): Promise<void> {
  const consumer = await connect(options).request<Consumer>('GET', consumerPath(options, name));
  const { shards, ...rest } = consumer;
  const rows = shards.map(({ shard, position, behind, lost, batch }) => [
    ...[shard, position, behind, lost].map(String),
    batch === null ? '-' : `${batch.records} until ${batch.expires_at}`,
    batch === null || batch.worker === '' ? '-' : batch.worker,
  ]);
  const titles = ['shard', 'position', 'behind', 'lost', 'batch', 'worker'];
  print(options, consumer, `${fields(rest)}\n\n${table(titles, rows)}`);
}

interface FetchOptions extends FleetOptions {
  max: number;
  wait: number;
  worker?: string;
}

/** The answer as it came: payloads are the devices' own bytes. */
async function fetchBatch(name: string, options: FetchOptions): Promise<void> {
  const { max, wait: wait_seconds, worker } = options;
  const path = consumerPath(options, name, 'fetch');
  const text = await connect(options).requestText('POST', path, { json: { max, wait_seconds, worker } });
  process.stdout.write(`${options.json ? text : printable(text.replace(/[\r\n]/g, ' '))}\n`);
}

/** `consumer create|list|show|delete|fetch|ack|release`. */
export function addConsumerCommands(program: Command): void {
  const group = program
    .command('consumer')
    .description('keep places in the records of a fleet, and read from them');

  fleetCommand(group, 'create <name>', 'make a consumer, or change one; what is not given stays')
    .option('--kind <kind>', 'records of this kind; may be given several times', several)
    .option('--schema <name>', 'records of this schema; may be given several times', several)
    .option('--start <where>', 'where a new one begins: earliest, latest or a time', 'earliest')
    .option('--lease-seconds <n>', 'how long a worker has for a batch', integerOption(1, 3_600))
    .action(create);

  fleetCommand(group, 'list', 'list the consumers of a fleet and how far each is behind').action(
    async (options: FleetOptions) => {
      const consumers = await connect(options).request<List<Consumer>>(
        'GET',
        pathOf('fleets', options.fleet, 'consumers'),
      );
      const titles = [
        'name',
        'kinds',
        'schemas',
        'behind',
        'seconds_behind',
        'lost',
        'lease_seconds',
      ] as const;
      print(options, consumers, listText(consumers, titles, 'This fleet has no consumers.'));
    },
  );

  fleetCommand(
    group,
    'show <name>',
    'show a consumer, its place in each shard and who is at work there',
  ).action(show);

  fleetCommand(group, 'delete <name>', 'delete a consumer and its places').action(
    async (name: string, options: FleetOptions) => {
      await connect(options).request('DELETE', consumerPath(options, name));
      print(options, { ok: true }, 'The consumer is deleted.');
    },
  );

  fleetCommand(
    group,
    'fetch <name>',
    'print a batch of records as JSON, which nobody else is given meanwhile',
  )
    .option('--max <n>', 'records at most', integerOption(1, 100_000), 100)
    .option('--wait <seconds>', 'how long to wait for records', integerOption(0, 60), 0)
    .option('--worker <name>', 'who asks, shown with the consumer')
    .action(fetchBatch);

  for (const [verb, name, description] of [
    ['acknowledge', 'ack', 'say that the records of a batch are done'],
    ['release', 'release', 'have a batch given again at once'],
  ] as const) {
    fleetCommand(group, `${name} <name> <batch>`, description).action(
      async (consumer: string, batch_id: string, options: FleetOptions) => {
        const path = consumerPath(options, consumer, verb);
        const settled = await connect(options).request<{ records: number }>('POST', path, {
          json: { batch_id },
        });
        print(options, settled, `${settled.records} records.`);
      },
    );
  }
}
