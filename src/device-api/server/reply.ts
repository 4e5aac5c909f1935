import type { ApiError } from '../../core/errors.ts';
import type { EventStream } from '../events/event-stream.ts';

export type ReplyHeaders = readonly (readonly [name: string, value: string])[];

/** What a handler returns; made by `createReply`. */
export interface Reply {
  readonly status: number;
  /** Status line and headers as they go out, but for what the library adds: Date, Content-Length. */
  readonly head: string;
  /** Absent: no body byte and no Content-Length. */
  readonly body?: string | Buffer;
  readonly closeConnection?: boolean;
  /** In place of a body: the response stays open and belongs to the stream. */
  readonly stream?: EventStream;
}

const statusLines: Readonly<Record<number, string>> = {
  200: '200 OK',
  201: '201 Created',
  204: '204 No Content',
  400: '400 Bad Request',
  401: '401 Unauthorized',
  403: '403 Forbidden',
  404: '404 Not Found',
  409: '409 Conflict',
  413: '413 Content Too Large',
  415: '415 Unsupported Media Type',
  429: '429 Too Many Requests',
  500: '500 Internal Server Error',
  503: '503 Service Unavailable',
};

/** D22: the library ends an idle connection after 8 to 12 s. */
const keptConnection = 'Connection: keep-alive\r\nKeep-Alive: timeout=8\r\n';

/**
 * Status line and headers in one text, which the library takes in one call: each call into it costs as much
 * as all the rest of a heartbeat. It filters no line break, so every value must be of our own making or have
 * been checked for its characters.
 */
function headOf(status: number, contentType: string, headers: ReplyHeaders): string {
  let head = `${statusLines[status] ?? status}\r\nCache-Control: no-store\r\n${keptConnection}Content-Type: ${contentType}`;
  for (const [name, value] of headers) head += `\r\n${name}: ${value}`;
  return head;
}

/**
 * The head of an answer that is the last of its connection. Unless the client has asked for that, the library adds the
 * header that says so.
 */
export function lastHead(head: string, isAskedFor: boolean): string {
  return head.replace(keptConnection, isAskedFor ? 'Connection: close\r\n' : '');
}

/** A reply with the headers that every response carries (D22). */
export function createReply(
  status: number,
  body: string | Buffer | undefined,
  headers: ReplyHeaders = [],
  closeConnection = false,
): Reply {
  const head = headOf(status, 'application/json', headers);
  return body === undefined ? { status, head, closeConnection } : { status, head, body, closeConnection };
}

/** The opening of an event stream. */
export function createStreamReply(stream: EventStream): Reply {
  return { status: 200, head: headOf(200, 'text/event-stream', []), stream };
}

/** D8: for devices that know only the specification's table. */
const strictStatuses: Readonly<Record<number, number>> = {
  403: 401,
  409: 400,
  413: 400,
  415: 400,
  429: 500,
  503: 500,
};

/** D7. */
export function errorReply(error: ApiError, strict: boolean): Reply {
  const { mailboxSize, retryAfterSeconds, requestId, closeConnection } = error.options;
  const headers: [string, string][] = [];
  if (mailboxSize !== undefined) headers.push(['X-Mailbox-Size', String(mailboxSize)]);
  if (retryAfterSeconds !== undefined) headers.push(['Retry-After', String(retryAfterSeconds)]);
  if (requestId !== undefined) headers.push(['X-Request-Id', requestId]);
  const status = (strict && strictStatuses[error.status]) || error.status;
  return createReply(status, JSON.stringify(error), headers, closeConnection);
}

const okBody = '{"ok":true}';

/** 201 of the send routes. */
export const storedReply: Reply = createReply(201, okBody);
export const replayed: Reply = createReply(201, okBody, [['Idempotent-Replayed', 'true']]);

export function settled(mailboxSize: number): Reply {
  return createReply(200, okBody, [['X-Mailbox-Size', String(mailboxSize)]]);
}

const mailboxEmpty = createReply(201, okBody, [['X-Messages-Available', 'false']]);
const mailWaiting = createReply(201, okBody, [['X-Messages-Available', 'true']]);

export function heartbeat(available: boolean): Reply {
  return available ? mailWaiting : mailboxEmpty;
}
