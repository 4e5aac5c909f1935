import type { FileHandle } from 'node:fs/promises';
import type { SingleBar } from 'cli-progress';
import { type Command, Option } from 'commander';
import { pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import type { AdminClient } from '../../admin-client.ts';
import { connect } from '../../connection.ts';
import { openFile } from '../../open-file.ts';
import { type FleetOptions, fleetCommand } from '../../options.ts';
import { endWithReader, print, printableLines, progressBar, writeOut } from '../../output.ts';
import { filterQuery, withDeviceFilter } from './device-filter.ts';

interface ExportOptions extends FleetOptions {
  out: string;
  format: 'csv' | 'ndjson';
  digests?: boolean;
  resume?: boolean;
}

const newline = 0x0a;
const quote = 0x22;
const lineBytesMax = 65_536;

/**
 * Finds where the last complete line begins and ends. In CSV a name may contain a line break within quotes, if it was
 * stored before such names were refused: that does not end a line.
 */
async function lastLine(handle: FileHandle, isCsv: boolean): Promise<{ from: number; end: number }> {
  let [from, end, at] = [0, 0, 0];
  let isQuoted = false;
  for await (const piece of handle.createReadStream({ start: 0, autoClose: false })) {
    for (const byte of piece as Buffer) {
      at += 1;
      if (isCsv && byte === quote) isQuoted = !isQuoted;
      else if (byte === newline && !isQuoted) [from, end] = [end, at];
    }
  }
  return { from, end };
}

async function textAt(handle: FileHandle, from: number, length: number): Promise<string> {
  const bytes = Buffer.alloc(Math.min(length, lineBytesMax));
  const { bytesRead } = await handle.read(bytes, 0, bytes.length, from);
  return bytes.toString('utf8', 0, bytesRead);
}

/** Checks that a resumed file has the same kind of lines. @throws OperatorError */
function checkAlike(first: string, { out, format, digests = false }: ExportOptions): void {
  if (first.startsWith('{') !== (format === 'ndjson')) {
    throw new OperatorError(`${out} is not ${format}: use the --format it was started with.`);
  }
  const hasDigests = format === 'csv' ? first.endsWith(',secret_digest') : first.includes('"secret_digest":');
  if (hasDigests === digests) return;
  throw new OperatorError(
    `${out} was started ${hasDigests ? 'with' : 'without'} --digests: resume ${hasDigests ? 'with' : 'without'} it, or start again.`,
  );
}

/** A place that an export is written to. */
interface Destination {
  /** How far an earlier export came: the length of the file, and its last device. */
  start: number;
  after: string;
  write(piece: Uint8Array, at: number): Promise<unknown>;
  finish(): Promise<void>;
  close(): Promise<void>;
}

function standardOutput({ resume }: ExportOptions): Destination {
  if (resume) throw new OperatorError('An export to standard output cannot be resumed.');
  endWithReader();
  const write = (piece: Uint8Array) =>
    writeOut(process.stdout.isTTY ? printableLines(Buffer.from(piece).toString('utf8')) : piece);
  return { start: 0, after: '', write, finish: async () => {}, close: async () => {} };
}

function fileDestination(handle: FileHandle, start: number, after: string): Destination {
  return {
    start,
    after,
    write: (piece, at) => handle.write(piece, 0, piece.length, at),
    finish: () => handle.sync(),
    close: () => handle.close(),
  };
}

/** Truncates a resumed file after its last complete line, and reads the device of that line. */
async function prepare(handle: FileHandle, options: ExportOptions): Promise<Destination> {
  if (!options.resume) return fileDestination(handle, 0, '');
  const isCsv = options.format === 'csv';
  const { from, end } = await lastLine(handle, isCsv);
  const [first = ''] = (await textAt(handle, 0, end)).split('\n', 1);
  if (end > 0) checkAlike(first, options);
  const last = await textAt(handle, from, end - from);
  const id = isCsv ? last.split(',')[1] : /"device_id":"(\w+)"/.exec(last)?.[1];
  await handle.truncate(end);
  return fileDestination(handle, end, id === 'device_id' ? '' : (id ?? ''));
}

async function openOut(options: ExportOptions): Promise<Destination> {
  const { out, resume } = options;
  if (out === '-') return standardOutput(options);
  try {
    return await openFile(out, resume ? 'r+' : 'wx', (handle) => prepare(handle, options));
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw new OperatorError(`${out} already exists. Continue it with --resume.`);
    throw new OperatorError(`${out} cannot be written: ${message}.`);
  }
}

async function progress(client: AdminClient, options: ExportOptions): Promise<SingleBar | undefined> {
  const bar = progressBar('Devices {bar} {value} of {total}', options);
  if (bar === undefined) return undefined;
  const path = pathTo('/fleets/{fleet_id}/counts', { fleet_id: options.fleet });
  const { devices } = await client.request('GET', path);
  bar.start(devices, 0);
  return bar;
}

async function exportDevices(options: ExportOptions): Promise<void> {
  const { fleet, out, format, digests, resume } = options;
  const filter = filterQuery(options);
  if (resume && Object.keys(filter).length > 0) {
    throw new OperatorError('Only an export of all devices can be resumed: start again.');
  }
  const client = connect(options);
  const destination = await openOut(options);
  const { start, after } = destination;
  let bar: SingleBar | undefined;
  let at = start;
  let devices = 0;
  try {
    bar = await progress(client, options);
    const query = { ...filter, format, after, ...(digests && { with: 'digests' }) };
    const path = pathTo('/fleets/{fleet_id}/devices:export', { fleet_id: fleet });
    const response = await client.open('GET', path, { query });
    let isHeader = format === 'csv';
    for await (const chunk of response.body ?? []) {
      let piece: Uint8Array = chunk;
      if (isHeader && start > 0) piece = piece.subarray(piece.indexOf(newline) + 1);
      for (let line = piece.indexOf(newline); line >= 0; line = piece.indexOf(newline, line + 1))
        devices += 1;
      if (isHeader && start === 0) devices -= 1;
      isHeader = false;
      await destination.write(piece, at);
      at += piece.length;
      bar?.update(devices);
    }
    await destination.finish();
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(
      `The export was interrupted (${(error as Error).message}). ${out === '-' ? 'Start again.' : `Continue ${out} with --resume.`}`,
    );
  } finally {
    bar?.stop();
    await destination.close();
  }
  if (out === '-') process.stderr.write(`Wrote ${devices} devices.\n`);
  else print(options, { fleet_id: fleet, devices, file: out }, `Wrote ${devices} devices to ${out}.`);
}

/** `device export`. */
export function addDeviceExport(group: Command): void {
  withDeviceFilter(
    fleetCommand(group, 'export', 'write the devices of a fleet, or those that match, to a file'),
  )
    .requiredOption('--out <file>', 'file to write, readable by its owner only; or - for standard output')
    .addOption(
      new Option('--format <format>', 'format of the file').choices(['ndjson', 'csv']).default('ndjson'),
    )
    .option('--digests', 'include the SHA-256 of each secret, so that an import keeps the secrets')
    .option('--resume', 'continue an interrupted export')
    .action(exportDevices);
}
