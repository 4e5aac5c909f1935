import { hash } from 'node:crypto';
import { renameSync, rmSync, statSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { OperatorError } from '../../../core/errors.ts';
import { fleetCommand, integerOption } from '../../options.ts';
import { endWithReader, print, printable, progressBar, writeOut } from '../../output.ts';
import {
  type ExportFile,
  type ExportFormat,
  exportFormats,
  openCsv,
  openLines,
  openStandardOutput,
} from './export-file.ts';
import {
  fieldsOf,
  type RecordLinesOptions,
  recordLines,
  recordText,
  withRecordOptions,
  withUntilOption,
} from './record-lines.ts';

interface TailOptions extends RecordLinesOptions {
  since?: string;
  maxPerSecond?: number;
}

function textOf(line: string): string {
  return printable(recordText(fieldsOf(line)));
}

async function tail(options: TailOptions): Promise<void> {
  const { since, json, maxPerSecond } = options;
  const start = since === undefined ? { after: 'latest' } : { from: since };
  const query = { ...start, max_per_second: maxPerSecond, follow: true };
  endWithReader();
  let isDisconnected = false;
  const onDisconnect = (reason: string): void => {
    if (!isDisconnected) process.stderr.write(`fleetpost: ${reason.replace(/\.$/, '')}; retrying.\n`);
    isDisconnected = true;
  };
  for await (const { lines, skipped } of recordLines(options, query, onDisconnect)) {
    isDisconnected = false;
    if (skipped > 0) process.stderr.write(`fleetpost: ${skipped} records skipped.\n`);
    if (lines.length === 0) continue;
    const text = lines.map((line) => `${json ? line : textOf(line)}\n`).join('');
    await writeOut(text);
  }
}

/** `tail`. */
export function addTailCommand(program: Command): void {
  const command = fleetCommand(program, 'tail', 'print records as they are stored, until interrupted');
  withRecordOptions(command)
    .option(
      '--max-per-second <n>',
      'skip records beyond so many a second, and say how many',
      integerOption(1, 1_000_000),
    )
    .action(tail);
}

interface ExportOptions extends RecordLinesOptions {
  format: ExportFormat;
  out: string;
  since?: string;
  until?: string;
  after?: string;
}

/** A file beside the output, named by the query, so that only the same export resumes it. */
function partialOf({ fleet, format, out, kind, schema, device, since, until, after }: ExportOptions): string {
  const query = JSON.stringify([fleet, format, kind, schema, device, since, until, after]);
  return `${out}.${hash('sha256', query).slice(0, 12)}.partial`;
}

async function openPartial(format: ExportFormat, out: string, partial: string): Promise<ExportFile> {
  try {
    const found = statSync(out, { throwIfNoEntry: false });
    if (found !== undefined) throw new Error('it exists already. Remove it, or name another file');
    if (format === 'ndjson') return await openLines(partial);
    if (format === 'csv') return await openCsv(partial);
    const { openParquet } = await import('./export-file.ts');
    return await openParquet(partial);
  } catch (error) {
    throw new OperatorError(`${out} cannot be written: ${(error as Error).message}.`);
  }
}

/** Writes all records to a file, as far as it gets; returns how many. */
async function writeRecords(options: ExportOptions, file: ExportFile): Promise<number> {
  const { since, until } = options;
  const after = file.after ?? options.after;
  const query = { from: since, to: until, after };
  const bar = progressBar('Log {bar} {percentage}%, {records} records, {eta_formatted} left', options);
  let records = 0;
  bar?.start(1, 0, { records });
  try {
    const onDisconnect = (reason: string): void => {
      if (bar === undefined) process.stderr.write(`fleetpost: ${reason.replace(/\.$/, '')}; retrying.\n`);
    };
    for await (const { lines, progress } of recordLines(options, query, onDisconnect)) {
      if (lines.length > 0) await file.write(lines);
      records += lines.length;
      if (progress === undefined) continue;
      bar?.setTotal(progress.total);
      bar?.update(progress.passed, { records });
    }
    await file.finish();
  } catch (error) {
    await file.abandon();
    throw error;
  } finally {
    bar?.stop();
  }
  return records;
}

async function exportRecords(options: ExportOptions): Promise<void> {
  const { format, out } = options;
  if (out === '-') {
    const records = await writeRecords(options, await openStandardOutput(format));
    process.stderr.write(`Wrote ${records} records.\n`);
    return;
  }
  const partial = partialOf(options);
  const file = await openPartial(format, out, partial);
  let records: number;
  try {
    records = await writeRecords(options, file);
  } catch (error) {
    if (format !== 'ndjson' || statSync(partial).size === 0) rmSync(partial, { force: true });
    else process.stderr.write(`fleetpost: the partial export is kept; repeat the command to resume it.\n`);
    throw error;
  }
  renameSync(partial, out);
  const resumed = file.after !== undefined;
  const text = `${resumed ? 'Resumed an earlier export: wrote' : 'Wrote'} ${records} records to ${out}.`;
  print(options, { fleet_id: options.fleet, file: out, format, records, resumed }, text);
}

/** `export`. */
export function addExportCommand(program: Command): void {
  const command = fleetCommand(program, 'export', 'write records to a file')
    .addOption(new Option('--format <format>', 'format of the file').choices(exportFormats).default('ndjson'))
    .requiredOption(
      '--out <file>',
      'file to write, readable by its owner only, complete once it appears; or - for standard output',
    )
    .option('--after <cursor>', 'start after the record with this cursor, as in the lines of NDJSON');
  withUntilOption(withRecordOptions(command)).action(exportRecords);
}
