import type { RecordDocument, RecordSkippedLine } from '../../contract/record.ts';
import { pathTo } from '../../contract/routes/path.ts';
import { nextSession } from '../session/session-state.ts';
import { CallError } from './call-error.ts';
import { isOfEndedSession, open, type Query } from './client.ts';
import { parseExactly, writeExactly } from './exact-json.ts';
import { linesOf } from './lines.ts';

const previewCharacters = 240;

/** A record of the log, its payload as text until somebody looks at it: thousands are kept at once. */
export interface StreamedRecord extends Omit<RecordDocument, 'payload'> {
  /** Position to read on from, after this record. */
  cursor: string;
  /** Beginning of its payload, on one line. */
  preview: string;
  line: string;
}

/** The whole payload of a record. */
export function payloadOf({ line }: StreamedRecord): unknown {
  return (parseExactly(line) as RecordDocument).payload;
}

/** The newest records, newest first. `isPartial`: older ones may match, further back than the server reads. */
export async function newestRecords(
  fleetId: string,
  query: Query,
  signal: AbortSignal,
): Promise<{ records: StreamedRecord[]; isPartial: boolean }> {
  const path = pathTo('/fleets/{fleet_id}/records:latest', { fleet_id: fleetId });
  const answer = await (await open('GET', path, { query, signal })).text();
  // Each record is on a line of its own, between two lines of the document around them.
  const [, ...lines] = answer.split('\n');
  const end = lines.pop();
  const { records } = recordsOf(lines.filter(Boolean).map((line) => line.replace(/,$/, '')));
  return { records, isPartial: end?.includes('"partial":true') ?? false };
}

export interface StreamHandlers {
  /** Records that came at once, in order. */
  onRecords(records: readonly StreamedRecord[]): void;
  /** The stream is open; or why not. It is tried again until it is stopped, unless it is refused. */
  onState(error: CallError | undefined): void;
  /** So many were left out by the server, more than it was asked for in a second. */
  onSkipped(count: number): void;
  /** All that matched was read. Not of a stream that follows. */
  onEnd?(): void;
}

const pausesMs = [500, 1_000, 2_000, 5_000, 10_000];

/** Reads records until it is stopped: opens the stream again where it broke. Returns what stops it. */
export function readRecords(fleetId: string, query: Query, handlers: StreamHandlers): () => void {
  const stopping = new AbortController();
  void keepStreaming(fleetId, query, handlers, stopping.signal);
  return () => stopping.abort();
}

async function keepStreaming(
  fleetId: string,
  query: Query,
  handlers: StreamHandlers,
  signal: AbortSignal,
): Promise<void> {
  let { after } = query;
  const path = pathTo('/fleets/{fleet_id}/records', { fleet_id: fleetId });
  for (let failures = 0; !signal.aborted; ) {
    try {
      const response = await open('GET', path, { query: { ...query, after }, signal });
      handlers.onState(undefined);
      failures = 0;
      for await (const lines of linesOf(response)) {
        const { records, skipped, cursor = after } = recordsOf(lines);
        after = cursor;
        if (records.length > 0) handlers.onRecords(records);
        if (skipped > 0) handlers.onSkipped(skipped);
      }
      if (query.follow !== true) return handlers.onEnd?.();
      throw new CallError(0, { error: 'stream_ended', msg: 'The stream ended.' });
    } catch (error) {
      if (isOfEndedSession(error)) {
        await nextSession(signal).catch(() => undefined);
        continue;
      }
      if (signal.aborted) return;
      const known = asCallError(error);
      handlers.onState(known);
      if (known.status >= 400 && known.status < 500 && known.status !== 429) return;
      // A 503 asks for a second at least (Retry-After).
      const step = Math.max(failures, known.status === 503 ? 1 : 0);
      await pause(pausesMs[Math.min(step, pausesMs.length - 1)] ?? 0, signal);
      failures += 1;
    }
  }
}

function asCallError(error: unknown): CallError {
  if (error instanceof CallError) return error;
  return new CallError(0, { error: 'stream_broken', msg: 'The stream broke.' });
}

/** Records of some lines, and how many the server has left out between them. */
function recordsOf(lines: readonly string[]): {
  records: StreamedRecord[];
  skipped: number;
  cursor?: string;
} {
  const records: StreamedRecord[] = [];
  let [skipped, last] = [0, ''];
  for (const line of lines) {
    const { payload, ...record } = parseExactly(line) as RecordDocument & RecordSkippedLine;
    last = record.cursor;
    if (record.record_id === undefined) skipped += record.skipped ?? 0;
    else records.push({ ...record, preview: previewOf(record.kind, payload), line });
  }
  return { records, skipped, ...(last !== '' && { cursor: last }) };
}

/** The beginning of a payload; of a receipt, what became of the mail. */
function previewOf(kind: string, payload: object): string {
  if (kind !== 'receipt') return writeExactly(payload, previewCharacters);
  const {
    event = '',
    fetch_count = 0,
    requeue_count = 0,
  } = payload as Partial<Record<string, string | number>>;
  const counts = [
    Number(fetch_count) > 1 ? `fetched ${fetch_count} times` : '',
    Number(requeue_count) > 0 ? `requeued ${requeue_count} times` : '',
  ];
  return [event, ...counts].filter(Boolean).join(', ');
}

/** Its listener goes with it: a stream that is tried again for hours has one signal. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
