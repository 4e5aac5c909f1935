import type { Command } from 'commander';
import { pathTo } from '../../../contract/routes/path.ts';
import { connect } from '../../connection.ts';
import { type FleetOptions, fleetCommand, integerOption } from '../../options.ts';
import { printable, writeOut } from '../../output.ts';
import {
  fieldsOf,
  latestLines,
  type RecordLinesOptions,
  recordText,
  withRecordFilter,
} from './record-lines.ts';

interface RecordListOptions extends RecordLinesOptions {
  limit: number;
  perSchema?: boolean;
}

async function listRecords(options: RecordListOptions): Promise<void> {
  const { fleet: fleet_id, kind, schema, device, limit, perSchema: per_schema, json } = options;
  const path = pathTo('/fleets/{fleet_id}/records:latest', { fleet_id });
  const query = { kind, schema, device, limit, per_schema };
  const text = await connect(options).requestText('GET', path, { query });
  if (json) return writeOut(`${text.replaceAll('\n', '')}\n`);
  const { lines, isPartial } = latestLines(text);
  const shown = lines.map((line) => printable(recordText(fieldsOf(line))));
  if (lines.length === 0) shown.push('No records found.');
  if (isPartial) shown.push('There may be more: only the end of the log was read. export reads all of it.');
  await writeOut(`${shown.join('\n')}\n`);
}

/** `record list`. */
export function addRecordCommands(program: Command): void {
  const group = program.command('record').description('look at the newest records of a fleet');
  withRecordFilter(fleetCommand(group, 'list', 'list records, newest first'))
    .option('--limit <n>', 'maximum number of records', integerOption(1, 1_000), 100)
    .option('--per-schema', 'only the newest of each schema')
    .action((options: RecordListOptions & FleetOptions) => listRecords(options));
}
