import { renameSync, rmSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { SingleBar } from 'cli-progress';
import { type Command, Option } from 'commander';
import { pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import { connect } from '../../connection.ts';
import { type FleetOptions, fleetCommand, integerOption, several } from '../../options.ts';
import { print, progressBar } from '../../output.ts';
import { type ImportFileOptions, importFile } from './device-import-file.ts';

interface ImportOptions extends FleetOptions {
  count: number;
  out: string;
  tag?: string[];
}

/**
 * Opens a new file, readable by its owner only, beside the one it replaces once complete. Opened before any device is
 * created, so that no secret has nowhere to go.
 */
async function openPartial(file: string): Promise<{ partial: string; handle: FileHandle }> {
  const partial = `${file}.${process.pid}.partial`;
  try {
    const found = statSync(file, { throwIfNoEntry: false });
    if (found !== undefined) throw new Error('it exists already, and may hold the only copy of secrets');
    return { partial, handle: await open(partial, 'wx', 0o600) };
  } catch (error) {
    throw new OperatorError(`${file} cannot be written: ${(error as Error).message}.`);
  }
}

const newline = 0x0a;

function countLines(bytes: Uint8Array): number {
  let lines = 0;
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) lines += 1;
  return lines;
}

/** Writes what arrives and reports the number of devices so far; settles once durable. */
async function receive(
  response: Response,
  handle: FileHandle,
  onDevices: (total: number) => void,
): Promise<void> {
  let lines = 0;
  for await (const chunk of response.body ?? []) {
    await handle.appendFile(chunk);
    lines += countLines(chunk);
    // The first line is the header.
    onDevices(lines - 1);
  }
  await handle.sync();
}

async function importDevices(options: ImportOptions): Promise<void> {
  const { fleet, count, out, tag } = options;
  const client = connect(options);
  const { partial, handle } = await openPartial(out);
  let bar: SingleBar | undefined;
  let received = 0;
  try {
    const path = pathTo('/fleets/{fleet_id}/devices:import', { fleet_id: fleet });
    const response = await client.open('POST', path, { json: { count, tags: tag } });
    bar = progressBar('Devices {bar} {value} of {total}, {eta_formatted} left', options);
    bar?.start(options.count, 0);
    await receive(response, handle, (total) => {
      received = total;
      bar?.update(total);
    });
    if (received !== count) throw new Error('the transfer was interrupted');
  } catch (error) {
    if (received > 0) {
      // These devices exist, and their secrets are nowhere else.
      throw new OperatorError(
        `Only ${received} of ${count} devices arrived (${(error as Error).message}); their secrets are in ${partial}.`,
      );
    }
    rmSync(partial);
    throw error;
  } finally {
    bar?.stop();
    await handle.close();
  }
  renameSync(partial, out);
  const document = { fleet_id: fleet, count, file: out };
  print(options, document, `Created ${count} devices; their secrets are in ${out} and nowhere else.`);
}

/** `device import`. */
export function addDeviceImport(group: Command): void {
  fleetCommand(group, 'import [file]', 'create the devices in a CSV or NDJSON file, or --count new ones')
    .option('--count <n>', 'number of devices, without a file', integerOption(1, 1_000_000))
    .requiredOption(
      '--out <file>',
      'file for the results, with generated secrets, CSV or NDJSON as the file is, CSV with --count; readable by its owner only',
    )
    .option('--tag <tag>', 'tag for devices created with --count; repeatable', several)
    .addOption(
      new Option('--on-existing <way>', 'what to do with devices that exist').choices([
        'error',
        'skip',
        'update',
      ]),
    )
    .option('--resume', 'continue an interrupted import of this file')
    .action(async (file: string | undefined, options: Partial<ImportOptions> & ImportFileOptions) => {
      const { count } = options;
      if (options.out === '-') throw new OperatorError('--out must be a file: the results hold secrets.');
      if (file !== undefined && count === undefined) await importFile(file, options);
      else if (file === undefined && count !== undefined) await importDevices({ ...options, count });
      else throw new OperatorError('Give a file of devices, or --count.');
    });
}
