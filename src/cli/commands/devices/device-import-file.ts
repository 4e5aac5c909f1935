import { createReadStream, statSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { parse } from 'csv-parse/sync';
import type { ImportedLine } from '../../../contract/device.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import { connect } from '../../connection.ts';
import { openFile } from '../../open-file.ts';
import type { FleetOptions } from '../../options.ts';
import { print, progressBar } from '../../output.ts';

/** Lines per write of the server, which does one write at a time. */
const linesPerWrite = 500;

/**
 * Collects devices that an interrupted import may have created without delivering their secret, which then nobody
 * knows.
 */
class LostSecrets {
  readonly #file: string;
  readonly #deviceIds = new Map<number, string>();
  /** The earlier import cannot have been past a line that is created only now, by more than one write. */
  #lastLine = Number.MAX_SAFE_INTEGER;

  constructor(file: string) {
    this.#file = file;
  }

  note({ line, device_id: deviceId = '', result, error }: ImportedLine): void {
    if (result === 'created') this.#lastLine = Math.min(this.#lastLine, line + linesPerWrite);
    const wasThere = error === 'already_exists' || ['skipped', 'unchanged', 'updated'].includes(result);
    if (wasThere && line < this.#lastLine) this.#deviceIds.set(line, deviceId);
  }

  /** Returns those whose line gave no secret. */
  async deviceIds(): Promise<string[]> {
    if (this.#deviceIds.size === 0) return [];
    const isCsv = this.#file.endsWith('.csv');
    const found: string[] = [];
    let number = 0;
    let columns: string[] = [];
    for await (const line of linesOf(this.#file)) {
      number += 1;
      if (isCsv && number === 1) columns = cellsOf(line).map((cell) => cell.replace(/^\ufeff/, '').trim());
      const deviceId = this.#deviceIds.get(number);
      if (deviceId === undefined) continue;
      const fields = isCsv ? fieldsOf(line, columns) : (JSON.parse(line) as Record<string, unknown>);
      if (!fields.secret && !fields.secret_digest) found.push(deviceId);
    }
    return found;
  }
}

function cellsOf(line: string): string[] {
  const [cells = []] = parse(line, { relax_column_count: true }) as string[][];
  return cells;
}

function fieldsOf(line: string, columns: readonly string[]): Record<string, unknown> {
  const cells = cellsOf(line);
  return Object.fromEntries(columns.map((column, index) => [column, cells[index]]));
}

/** Splits lines as the server does: at line feeds only. */
async function* linesOf(file: string): AsyncGenerator<string> {
  let rest = '';
  for await (const piece of createReadStream(file, 'utf8')) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  yield rest;
}

export interface ImportFileOptions extends FleetOptions {
  out: string;
  onExisting?: string;
  resume?: boolean;
}

const newline = 0x0a;
const tailBytes = 65_536;
const listedMax = 20;

/** The file of results, and the line to continue from. */
interface Answers {
  handle: FileHandle;
  fromLine: number;
}

/** Opens the file of results, which may contain secrets: a new one, or that of an interrupted import. */
async function openAnswers(file: string, resume: boolean): Promise<Answers> {
  try {
    return await openFile(file, resume ? 'r+' : 'wx', async (handle) => ({
      handle,
      fromLine: resume ? await cutAfterLast(handle) : 1,
    }));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') {
      throw new OperatorError(`${file} already exists. Continue it with --resume.`);
    }
    throw new OperatorError(`${file} cannot be written: ${message}.`);
  }
}

/** Cuts off an incomplete last line. Returns the line to continue from. */
async function cutAfterLast(handle: FileHandle): Promise<number> {
  const { size } = await handle.stat();
  const tail = Buffer.alloc(Math.min(size, tailBytes));
  await handle.read(tail, 0, tail.length, size - tail.length);
  const end = tail.lastIndexOf(newline) + 1;
  await handle.truncate(size - tail.length + end);
  const [last = ''] = tail.subarray(0, end).toString('utf8').trimEnd().split('\n').slice(-1);
  const line = Number(
    last.startsWith('{') ? (JSON.parse(last) as { line: number }).line : last.split(',')[0],
  );
  return Number.isInteger(line) ? line + 1 : 1;
}

type Summary = Record<ImportedLine['result'], number>;

interface Received {
  summary: Summary;
  /** Line at which the server ended the import, for too many bad ones. */
  endedAtLine: number | undefined;
}

function answerOf(text: string): ImportedLine {
  if (text.startsWith('{')) return JSON.parse(text) as ImportedLine;
  const [line, device_id = '', result = '', , error = ''] = text.split(',');
  return { line: Number(line), device_id, result: result as ImportedLine['result'], error };
}

/** Writes complete lines of results as they arrive, and counts them. */
async function receive(
  answers: Readable,
  handle: FileHandle,
  skipHeader: boolean,
  onAnswer: (answer: ImportedLine) => void,
): Promise<Received> {
  let endedAtLine: number | undefined;
  const summary: Summary = { created: 0, updated: 0, unchanged: 0, skipped: 0, error: 0 };
  let { size: at } = await handle.stat();
  let rest = Buffer.alloc(0);
  let skip = skipHeader;
  for await (const piece of answers) {
    rest = Buffer.concat([rest, piece as Buffer]);
    let whole = rest.subarray(0, rest.lastIndexOf(newline) + 1);
    rest = Buffer.from(rest.subarray(whole.length));
    if (skip && whole.length > 0) {
      whole = whole.subarray(whole.indexOf(newline) + 1);
      skip = false;
    }
    await handle.write(whole, 0, whole.length, at);
    at += whole.length;
    for (const line of whole.toString('utf8').split('\n')) {
      const answer = answerOf(line);
      if (!(answer.result in summary)) continue;
      if (answer.error === 'import_ended') {
        endedAtLine = answer.line;
        continue;
      }
      summary[answer.result] += 1;
      onAnswer(answer);
    }
  }
  await handle.sync();
  return { summary, endedAtLine };
}

export async function importFile(file: string, options: ImportFileOptions): Promise<void> {
  const { fleet, out, onExisting = 'error', resume = false } = options;
  const isCsv = file.endsWith('.csv');
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat?.isFile()) throw new OperatorError(`${file} cannot be read: it is not a regular file.`);
  const client = connect(options);
  const { handle, fromLine } = await openAnswers(out, resume);
  const bar = progressBar('Sent {bar} {percentage} %, {eta_formatted} left', options);
  bar?.start(stat.size, 0);
  let received: Received;
  const lost = new LostSecrets(file);
  try {
    const body = createReadStream(file);
    let sent = 0;
    body.on('data', (piece) => {
      sent += piece.length;
      bar?.update(sent);
    });
    const query = new URLSearchParams({ on_existing: onExisting, from_line: String(fromLine) });
    if (resume) query.set('resume', 'true');
    const path = pathTo('/fleets/{fleet_id}/devices:import', { fleet_id: fleet });
    const answers = await client.exchange(
      `${path}?${query}`,
      isCsv ? 'text/csv' : 'application/x-ndjson',
      body,
    );
    received = await receive(answers, handle, isCsv && fromLine > 1, (answer) => {
      if (resume) lost.note(answer);
    });
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(
      `The import was interrupted (${(error as Error).message}). Continue after the last line of ${out} with --resume.`,
    );
  } finally {
    bar?.stop();
    await handle.close();
  }
  const { summary, endedAtLine } = received;
  const { created, updated, unchanged, skipped, error } = summary;
  const unknown = await lost.deviceIds();
  const ids = `${unknown.slice(0, listedMax).join(', ')}${unknown.length > listedMax ? ', …' : ''}`;
  const warning =
    unknown.length === 0
      ? ''
      : `\nDevices that existed already: ${unknown.length}. If the interrupted import created them, their secrets are lost; rotate those you do not know: ${ids}`;
  const ending =
    endedAtLine === undefined
      ? ''
      : `\nThe server ended the import at line ${endedAtLine}: too many bad lines (importBadLinesMax). See ${out}; go on behind that line with --resume.`;
  print(
    options,
    {
      ...summary,
      file: out,
      ...(endedAtLine !== undefined && { ended_at_line: endedAtLine }),
      ...(resume && { secrets_unknown: unknown }),
    },
    `Created ${created}, updated ${updated}, unchanged ${unchanged}, skipped ${skipped}, refused ${error}. ${out} has the result of each line, with generated secrets.${ending}${warning}`,
  );
  if (error > 0 || endedAtLine !== undefined || unknown.length > 0) process.exitCode = 1;
}
