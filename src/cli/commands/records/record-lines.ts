import { type Command, InvalidArgumentError } from 'commander';
import { sleep } from '../../../core/async.ts';
import { OperatorError } from '../../../core/errors.ts';
import { pathOf } from '../../admin-client.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { several } from '../../options.ts';

const durationPattern = /^(\d{1,9})(s|m|h|d)$/;
const unitSeconds: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Reads an option as a time: `1h` ago, or ISO 8601. */
function time(text: string): string {
  const [, count, unit = ''] = durationPattern.exec(text) ?? [];
  if (count !== undefined)
    return new Date(Date.now() - Number(count) * (unitSeconds[unit] ?? 0) * 1_000).toISOString();
  const ms = Date.parse(text);
  if (!Number.isNaN(ms) && /^\d{4}-/.test(text)) return new Date(ms).toISOString();
  throw new InvalidArgumentError(
    'It must be a time like 2026-01-31T12:00:00Z, or how long ago, like 90s, 15m, 1h or 7d.',
  );
}

/** What says which records are wanted. */
export function withRecordOptions(command: Command): Command {
  return command
    .option(
      '--kind <kind>',
      'of this kind: datapoint, message, ...; given several times, of any of them',
      several,
    )
    .option('--schema <name>', 'of this schema; given several times, of any of them', several)
    .option('--device <id>', 'of this device; given several times, of any of them', several)
    .option('--since <time>', 'stored then or later: a time, or how long ago, like 1h', time);
}

export function withUntilOption(command: Command): Command {
  return command.option('--until <time>', 'stored before then, likewise', time);
}

/** Which records, as the commands have them. */
export interface RecordLinesOptions extends ConnectionOptions {
  fleet: string;
  kind?: string[];
  schema?: string[];
  device?: string[];
}

/** Some lines as they came, each a record, and how far the server has come in its logs. */
export interface RecordChunk {
  lines: string[];
  progress: { passed: number; total: number } | undefined;
}

interface Told {
  cursor: string;
  passed?: number;
  total?: number;
}

const retryMs = 1_000;
/** How long a server may be away while it starts again. */
const awaySecondsMax = 120;
/** A record's cursor is the last of its line. */
const cursorAt = ',"cursor":"';

export function cursorOf(line: string): string {
  return line.slice(line.lastIndexOf(cursorAt) + cursorAt.length, -2);
}

/**
 * Lines of `GET …/records`, from `query` on. When the server goes away it is asked again, from behind the last line
 * that came. @throws OperatorError when it is not there at first, or for long, or refuses.
 */
export async function* recordLines(
  options: RecordLinesOptions,
  given: Record<string, string>,
  onAway: (reason: string) => void,
): AsyncGenerator<RecordChunk> {
  const query = new URLSearchParams({ ...given, progress: 'true' });
  for (const name of ['kind', 'schema', 'device'] as const) {
    for (const value of options[name] ?? []) query.append(name, value);
  }
  const path = `${pathOf('fleets', options.fleet)}/records`;
  let awaySinceMs: number | undefined;
  for (let isFirst = true; ; isFirst = false) {
    try {
      const response = await connect(options).open('GET', `${path}?${query}`);
      for await (const chunk of chunksOf(response)) {
        awaySinceMs = undefined;
        if (chunk.cursor !== undefined) query.set('after', chunk.cursor);
        yield chunk;
      }
      if (given.follow === undefined) return;
      throw new Error('the server has ended the stream');
    } catch (error) {
      if (isFirst && error instanceof OperatorError) throw error;
      awaySinceMs ??= Date.now();
      if (Date.now() - awaySinceMs > awaySecondsMax * 1_000) throw asOperatorError(error);
      onAway((error as Error).message);
      await sleep(retryMs);
    }
  }
}

function asOperatorError(error: unknown): OperatorError {
  if (error instanceof OperatorError) return error;
  return new OperatorError(`The records broke off: ${(error as Error).message}.`);
}

async function* chunksOf(response: Response): AsyncGenerator<RecordChunk & { cursor: string | undefined }> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of response.body ?? []) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    const lines: string[] = [];
    let progress: RecordChunk['progress'];
    let cursor: string | undefined;
    for (const line of parts) {
      if (line.startsWith('{"record_id"')) {
        lines.push(line);
        cursor = cursorOf(line);
      } else if (line !== '') {
        const told = JSON.parse(line) as Told;
        cursor = told.cursor;
        progress = { passed: told.passed ?? 0, total: told.total ?? 0 };
      }
    }
    yield { lines, progress, cursor };
  }
}

export interface RecordFields {
  record_id: string;
  device_id: string;
  kind: string;
  schema: string;
  stored_at: string;
  /** The text that the device sent, which parsing would not keep. */
  payload: string;
}

/** A line as its fields. What is in front of the payload cannot hold the mark that it begins with. */
export function fieldsOf(line: string): RecordFields {
  const mark = ',"payload":';
  const at = line.indexOf(mark);
  const front = JSON.parse(`${line.slice(0, at)}}`) as Omit<RecordFields, 'payload'>;
  return { ...front, payload: line.slice(at + mark.length, line.lastIndexOf(cursorAt)) };
}
