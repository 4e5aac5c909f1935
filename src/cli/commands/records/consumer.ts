import type { Command } from 'commander';
import { consumerColumns, consumerShardColumns } from '../../../contract/columns/reader.ts';
import type { ConsumerDocument } from '../../../contract/consumer.ts';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { connect } from '../../connection.ts';
import { moment, secondsOption } from '../../moment.ts';
import { type FleetOptions, fleetCommand, integerOption, option, several } from '../../options.ts';
import { fields, listText, print, printable } from '../../output.ts';
import { addPauseCommands, listCommand, requestCommand } from '../declared.ts';

/** Reads `--start`. */
function startOf(text: string): string {
  return text === 'earliest' || text === 'latest' ? text : moment('back')(text);
}

function consumerPath({ fleet: fleet_id }: FleetOptions, name: string) {
  return pathTo('/fleets/{fleet_id}/consumers/{name}', { fleet_id, name });
}

/** In time: the log has the records of all fleets, so that its positions count more than there is to read. */
function lagText({ behind, seconds_behind }: ConsumerDocument): string {
  if (behind === 0) return 'has read all records there are';
  return `has records to read, the oldest stored ${Math.ceil(seconds_behind)} seconds ago or later`;
}

function shownText({ shards, ...consumer }: ConsumerDocument): string {
  return `${fields(consumer)}\n\n${listText({ items: shards, next: null }, consumerShardColumns, '')}`;
}

interface FetchOptions extends FleetOptions {
  max: number;
  wait: number;
  worker?: string;
}

/** Prints the response unchanged, since payloads are the devices' own bytes. */
async function fetchBatch(name: string, options: FetchOptions): Promise<void> {
  const { max, wait: wait_seconds, worker } = options;
  const path = below(consumerPath(options, name), '/fetch', {});
  const text = await connect(options).requestText('POST', path, { json: { max, wait_seconds, worker } });
  process.stdout.write(`${options.json ? text : printable(text.replace(/[\r\n]/g, ' '))}\n`);
}

/** Settling is idempotent: a second time there is nothing left. */
function settledText(verb: 'ack' | 'release', { records }: { records: number }): string {
  if (verb === 'release') return `Released ${records} records: the next fetch gets them.`;
  if (records === 0) return 'Nothing to acknowledge: this batch was acknowledged before.';
  return `Acknowledged ${records} records.`;
}

/** `consumer create|list|show|pause|resume|delete|fetch|ack|release`. */
export function addConsumerCommands(program: Command): void {
  const group = program
    .command('consumer')
    .description('read the records of a fleet in batches, with stored cursors');

  const one = '/fleets/{fleet_id}/consumers/{name}';
  requestCommand(group, 'PUT', one, {
    usage: 'create <name>',
    does: 'create a consumer, or change one; absent options stay as they are',
    body: {
      kinds: option('--kind <kind>', 'read records of this kind; repeatable', several),
      schemas: option('--schema <name>', 'read records of this schema; repeatable', several),
      start: option(
        '--start <where>',
        'where a new consumer begins: earliest, latest, a time, or a duration ago like 1h',
        startOf,
      ).default('earliest'),
      lease_seconds: option('--lease-seconds <n>', 'lease of a batch', secondsOption(1, 3_600)),
    },
    done: (consumer) => `Consumer ${consumer.name} ${lagText(consumer)}.`,
  });

  listCommand(group, '/fleets/{fleet_id}/consumers', {
    does: 'list the consumers of a fleet and their lag',
    columns: consumerColumns,
    empty: 'This fleet has no consumers.',
    isWhole: true,
  });

  requestCommand(group, 'GET', one, {
    usage: 'show <name>',
    does: 'show a consumer with its cursor and leased batch in each shard',
    done: shownText,
  });

  addPauseCommands(group, one, {
    of: 'a consumer',
    meanwhile: 'it keeps its cursors, and leases no further batch until it is resumed',
  });
  requestCommand(group, 'DELETE', one, {
    usage: 'delete <name>',
    does: 'delete a consumer and its cursors',
    done: 'The consumer is deleted.',
  });

  fleetCommand(group, 'fetch <name>', 'lease a batch of records and print it as JSON')
    .option('--max <n>', 'maximum number of records', integerOption(1, 100_000), 100)
    .option('--wait <seconds>', 'how long to wait for records', secondsOption(0, 60), 0)
    .option('--worker <name>', 'name of the worker, shown with the consumer')
    .action(fetchBatch);

  for (const [verb, name, description] of [
    ['acknowledge', 'ack', 'acknowledge a batch'],
    ['release', 'release', 'release a batch, to be redelivered at once'],
  ] as const) {
    fleetCommand(group, `${name} <name> <batch>`, description).action(
      async (consumer: string, batch_id: string, options: FleetOptions) => {
        const path = below(consumerPath(options, consumer), `/${verb}`, {});
        const settled = await connect(options).request('POST', path, { json: { batch_id } });
        print(options, settled, settledText(name, settled));
      },
    );
  }
}
