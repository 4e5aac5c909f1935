import { createWriteStream, renameSync, statSync } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { SingleBar } from 'cli-progress';
import type { Command } from 'commander';
import { OperatorError } from '../../core/errors.ts';
import { pathOf } from '../admin-client.ts';
import { type ConnectionOptions, connect } from '../connection.ts';
import { fleetCommand, integer, several } from '../options.ts';
import { print } from '../output.ts';

interface ImportOptions extends ConnectionOptions {
  fleet: string;
  count: number;
  out: string;
  tag?: string[];
}

const newline = 0x0a;

function countLines(bytes: Uint8Array): number {
  let lines = 0;
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) lines += 1;
  return lines;
}

/** The file appears whole or not at all; so what is there must be a file. */
function checkTarget(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile()) throw new OperatorError(`${file} is not a file.`);
}

/** Writes what arrives into a new file of mode 0600, durably. `onDevices` is told how many lines of devices there are. */
async function receive(
  body: ReadableStream,
  file: string,
  onDevices: (total: number) => void,
): Promise<void> {
  // The first line is the header.
  let devices = -1;
  await pipeline(
    Readable.fromWeb(body),
    async function* (chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        devices += countLines(chunk);
        onDevices(devices);
        yield chunk;
      }
    },
    createWriteStream(file, { flags: 'wx', mode: 0o600, flush: true }),
  );
}

async function importDevices(options: ImportOptions): Promise<void> {
  const { fleet, count, out, tag } = options;
  checkTarget(out);
  const path = `${pathOf('fleets', fleet)}/devices:import`;
  const response = await connect(options).open('POST', path, { json: { count, tags: tag } });
  const partial = `${out}.${process.pid}.partial`;
  const format = 'Devices {bar} {value}/{total} | {eta_formatted} left';
  const bar =
    process.stderr.isTTY && !options.json ? new SingleBar({ format, stream: process.stderr }) : undefined;
  bar?.start(count, 0);
  let received = 0;
  let reason = '';
  try {
    await receive(response.body as ReadableStream, partial, (total) => {
      received = Math.max(0, total);
      bar?.update(received);
    });
  } catch (error) {
    reason = ` (${(error as Error).message})`;
  }
  bar?.stop();
  if (received !== count || reason !== '') {
    // Those devices exist, and their secrets are nowhere else: the file stays.
    throw new OperatorError(
      `Only ${received} of ${count} devices arrived${reason}; what did is in ${partial}.`,
    );
  }
  renameSync(partial, out);
  const document = { fleet_id: fleet, count, file: out };
  print(options, document, `Made ${count} devices; their secrets are in ${out} and nowhere else.`);
}

/** `device import`. */
export function addDeviceImport(group: Command): void {
  fleetCommand(group, 'import', 'make many devices and write their secrets to a file')
    .requiredOption('--count <n>', 'how many', integer(1, 1_000_000))
    .requiredOption('--out <file>', 'the file: CSV of fleet_id, device_id, device_secret, for its owner only')
    .option('--tag <tag>', 'a tag for all of them; may be given several times', several)
    .action(importDevices);
}
