import type { Command } from 'commander';
import type { RecordDocument, RecordProgressLine, RecordSkippedLine } from '../../../contract/record.ts';
import { pathTo, type QueryAt } from '../../../contract/routes/path.ts';
import { sleep } from '../../../core/async.ts';
import { OperatorError } from '../../../core/errors.ts';
import { connect } from '../../connection.ts';
import { moment } from '../../moment.ts';
import { type FleetOptions, several } from '../../options.ts';

/** Adds the options that filter records by what they are. */
export function withRecordFilter(command: Command): Command {
  return command
    .option('--kind <kind>', 'only this kind: datapoint, message, ...; repeatable', several)
    .option('--schema <name>', 'only this schema; repeatable', several)
    .option('--device <id>', 'only this device; repeatable', several);
}

/** Adds the options that filter records. */
export function withRecordOptions(command: Command): Command {
  return withRecordFilter(command).option(
    '--since <when>',
    'stored at this time or later: a time, or a duration ago like 1h',
    moment('back'),
  );
}

export function withUntilOption(command: Command): Command {
  return command.option('--until <when>', 'stored before this time, likewise', moment('back'));
}

type RecordQuery = QueryAt<'GET', '/fleets/{fleet_id}/records'>;

/** Record filter as command options. */
export interface RecordLinesOptions extends FleetOptions {
  kind?: NonNullable<RecordQuery['kind']>;
  schema?: string[];
  device?: string[];
}

/** Unchanged lines, each a record, and the server's progress in its logs. */
export interface RecordChunk {
  lines: string[];
  /** Records that the server has skipped before those lines. */
  skipped: number;
  progress: RecordProgressLine | undefined;
}

const retryMs = 1_000;
/** How long a server may be unreachable during a restart. */
const reconnectSecondsMax = 120;
/** The cursor is the last member of a line. */
const cursorAt = ',"cursor":"';

export function cursorOf(line: string): string {
  return line.slice(line.lastIndexOf(cursorAt) + cursorAt.length, -2);
}

/**
 * Yields lines of `GET …/records`. Reconnects when the server goes away, and continues after the last line received.
 * @throws OperatorError if the server is unreachable at first or for too long, or refuses.
 */
export async function* recordLines(
  options: RecordLinesOptions,
  filter: RecordQuery,
  onDisconnect: (reason: string) => void,
): AsyncGenerator<RecordChunk> {
  const { fleet: fleet_id, kind, schema, device } = options;
  const path = pathTo('/fleets/{fleet_id}/records', { fleet_id });
  const query: RecordQuery = { ...filter, kind, schema, device, progress: true };
  let disconnectedSinceMs: number | undefined;
  for (let isFirst = true; ; isFirst = false) {
    try {
      const response = await connect(options).open('GET', path, { query });
      for await (const chunk of chunksOf(response)) {
        disconnectedSinceMs = undefined;
        if (chunk.cursor !== undefined) query.after = chunk.cursor;
        yield chunk;
      }
      if (filter.follow === undefined) return;
      throw new Error('the server ended the stream');
    } catch (error) {
      if (isFirst && error instanceof OperatorError) throw error;
      disconnectedSinceMs ??= Date.now();
      if (Date.now() - disconnectedSinceMs > reconnectSecondsMax * 1_000) throw asOperatorError(error);
      onDisconnect((error as Error).message);
      await sleep(retryMs);
    }
  }
}

function asOperatorError(error: unknown): OperatorError {
  if (error instanceof OperatorError) return error;
  return new OperatorError(`The connection was lost: ${(error as Error).message}.`);
}

async function* chunksOf(response: Response): AsyncGenerator<RecordChunk & { cursor: string | undefined }> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of response.body ?? []) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    const lines: string[] = [];
    let progress: RecordProgressLine | undefined;
    let cursor: string | undefined;
    let skipped = 0;
    for (const line of parts) {
      if (line.startsWith('{"record_id"')) {
        lines.push(line);
        cursor = cursorOf(line);
      } else if (line.startsWith('{"skipped"')) {
        const told = JSON.parse(line) as RecordSkippedLine;
        skipped += told.skipped;
        cursor = told.cursor;
      } else if (line !== '') {
        progress = JSON.parse(line) as RecordProgressLine;
        cursor = progress.cursor;
      }
    }
    yield { lines, skipped, progress, cursor };
  }
}

/** A record whose payload is the text that the device sent, which parsing would not preserve. */
export type RecordFields = Omit<RecordDocument, 'payload'> & { payload: string };

/** The lines of `GET …/records:latest`, each a record without a cursor. */
export function latestLines(text: string): { lines: string[]; isPartial: boolean } {
  const parts = text.split('\n');
  const lines = parts.filter((part) => part.startsWith('{"record_id"')).map((part) => part.replace(/,$/, ''));
  return { lines, isPartial: parts.at(-1)?.endsWith('"partial":true}') === true };
}

export function recordText(fields: RecordFields): string {
  const { stored_at, recorded_at, device_id, kind, schema, payload } = fields;
  const recorded = recorded_at === undefined ? '' : `  recorded at ${recorded_at}`;
  return `${stored_at}  ${device_id}  ${kind}  ${schema}  ${payload}${recorded}`;
}

/** Splits a line into fields. Nothing before the payload can contain the mark that begins it. */
export function fieldsOf(line: string): RecordFields {
  const mark = ',"payload":';
  const at = line.indexOf(mark);
  const head = JSON.parse(`${line.slice(0, at)}}`) as Omit<RecordFields, 'payload'>;
  const cursor = line.endsWith('"}') ? line.lastIndexOf(cursorAt) : -1;
  return { ...head, payload: line.slice(at + mark.length, cursor < 0 ? -1 : cursor) };
}
