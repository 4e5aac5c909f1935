import { type FileHandle, open } from 'node:fs/promises';
import { SingleBar } from 'cli-progress';
import { type Command, Option } from 'commander';
import { OperatorError } from '../../../core/errors.ts';
import { type AdminClient, pathOf, queryOf } from '../../admin-client.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { fleetCommand } from '../../options.ts';
import { print } from '../../output.ts';
import { type DeviceFilterOptions, filterQuery, withDeviceFilter } from './device-filter.ts';

interface ExportOptions extends ConnectionOptions, DeviceFilterOptions {
  fleet: string;
  out: string;
  format: 'csv' | 'ndjson';
  digests?: boolean;
  resume?: boolean;
}

const newline = 0x0a;
const quote = 0x22;
const lineBytesMax = 65_536;

/**
 * Where the last whole line begins and ends. In CSV a name that was stored before names were refused for it may have a
 * line break, within quotes: what follows that is no line, whatever it looks like.
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

/** One file has lines of one kind. @throws OperatorError */
function checkAlike(first: string, { out, format, digests = false }: ExportOptions): void {
  if (first.startsWith('{') !== (format === 'ndjson')) {
    throw new OperatorError(`${out} is not ${format}: go on with the --format it was begun with.`);
  }
  const hasDigests = format === 'csv' ? first.endsWith(',secret_digest') : first.includes('"secret_digest":');
  if (hasDigests === digests) return;
  throw new OperatorError(
    `${out} was begun ${hasDigests ? 'with' : 'without'} --digests: go on ${hasDigests ? 'with' : 'without'} it, or begin anew.`,
  );
}

/** The file, cut behind its last whole line, and the device of that. */
async function openOut(options: ExportOptions) {
  const { out, resume, format } = options;
  try {
    const handle = await open(out, resume ? 'r+' : 'wx', 0o600);
    if (!resume) return { handle, at: 0, after: '' };
    const { from, end } = await lastLine(handle, format === 'csv');
    const [first = ''] = (await textAt(handle, 0, end)).split('\n', 1);
    if (end > 0) checkAlike(first, options);
    const last = await textAt(handle, from, end - from);
    const id = format === 'csv' ? last.split(',')[1] : /"device_id":"(\w+)"/.exec(last)?.[1];
    await handle.truncate(end);
    return { handle, at: end, after: id === 'device_id' ? '' : (id ?? '') };
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST')
      throw new OperatorError(`${out} is there already: --resume goes on where it ends.`);
    throw new OperatorError(`${out} cannot be written: ${message}.`);
  }
}

async function progress(client: AdminClient, options: ExportOptions): Promise<SingleBar | undefined> {
  if (options.json || !process.stderr.isTTY) return undefined;
  const path = `${pathOf('fleets', options.fleet)}/counts`;
  const { devices } = await client.request<{ devices: number }>('GET', path);
  const bar = new SingleBar({ format: 'Devices {bar} {value} of {total}', stream: process.stderr });
  bar.start(devices, 0);
  return bar;
}

async function exportDevices(options: ExportOptions): Promise<void> {
  const { fleet, out, format, digests, resume } = options;
  const filter = filterQuery(options);
  if (resume && Object.keys(filter).length > 0) {
    throw new OperatorError('Only an export of all devices can be gone on with: begin anew.');
  }
  const client = connect(options);
  const { handle, at: start, after } = await openOut(options);
  const bar = await progress(client, options);
  let at = start;
  let devices = 0;
  try {
    const query = queryOf({ ...filter, format, after, ...(digests && { with: 'digests' }) });
    const response = await client.open('GET', `${pathOf('fleets', fleet)}/devices:export?${query}`);
    let isHeader = format === 'csv';
    for await (const chunk of response.body ?? []) {
      let piece: Uint8Array = chunk;
      if (isHeader && start > 0) piece = piece.subarray(piece.indexOf(newline) + 1);
      for (let line = piece.indexOf(newline); line >= 0; line = piece.indexOf(newline, line + 1))
        devices += 1;
      if (isHeader && start === 0) devices -= 1;
      isHeader = false;
      await handle.write(piece, 0, piece.length, at);
      at += piece.length;
      bar?.update(devices);
    }
    await handle.sync();
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(
      `The export ended early (${(error as Error).message}): --resume goes on where ${out} ends.`,
    );
  } finally {
    bar?.stop();
    await handle.close();
  }
  print(options, { fleet_id: fleet, devices, file: out }, `Wrote ${devices} devices to ${out}.`);
}

/** `device export`. */
export function addDeviceExport(group: Command): void {
  withDeviceFilter(
    fleetCommand(group, 'export', 'write the devices of a fleet, or those that fit, to a file'),
  )
    .requiredOption('--out <file>', 'the file, for its owner only')
    .addOption(new Option('--format <format>', 'of its lines').choices(['ndjson', 'csv']).default('ndjson'))
    .option('--digests', 'with the SHA-256 of each secret, so that an import keeps the secrets')
    .option('--resume', 'go on with an export that ended early')
    .action(exportDevices);
}
