import type { ApiError } from '../../core/errors.ts';
import type { EventStream } from '../events/event-stream.ts';

export type ReplyHeaders = readonly (readonly [name: string, value: string])[];

/** A handler's result; made by `createReply`. */
export interface Reply {
  readonly status: number;
  /** Status line and headers, except those that the library adds: Date, Content-Length. */
  readonly head: string;
  /** If absent, neither a body nor a Content-Length is sent. */
  readonly body?: string | Buffer;
  readonly closeConnection?: boolean;
  /** True if the head tells of the mailbox already (D28). */
  readonly tellsMailbox?: boolean;
  /** The same to devices with 0, 1, 2 … mails. */
  readonly bySize?: readonly Reply[];
  /** Takes over the response, which stays open, in place of a body. */
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
const keepAliveHeaders = 'Connection: keep-alive\r\nKeep-Alive: timeout=8\r\n';

/**
 * Builds status line and headers as one text, for one call into the library: each call costs as much as all the rest of
 * a heartbeat. The library filters no line breaks, so every value must be our own or have been checked for its
 * characters.
 */
function headOf(status: number, contentType: string, headers: ReplyHeaders): string {
  let head = `${statusLines[status] ?? status}\r\nCache-Control: no-store\r\n${keepAliveHeaders}Content-Type: ${contentType}`;
  for (const [name, value] of headers) head += `\r\n${name}: ${value}`;
  return head;
}

/**
 * Returns the head for the last answer of a connection. Unless the client has requested the close, the library adds the
 * header itself.
 */
export function lastHead(head: string, isRequested: boolean): string {
  return head.replace(keepAliveHeaders, isRequested ? 'Connection: close\r\n' : '');
}

/** Creates a reply with the headers that every response has (D22). */
export function createReply(
  status: number,
  body: string | Buffer | undefined,
  headers: ReplyHeaders = [],
  closeConnection = false,
): Reply {
  const head = headOf(status, 'application/json', headers);
  return body === undefined ? { status, head, closeConnection } : { status, head, body, closeConnection };
}

/** Creates the reply that opens an event stream. */
export function createStreamReply(stream: EventStream): Reply {
  return { status: 200, head: headOf(200, 'text/event-stream', []), stream };
}

/** Status replacements for devices that know only the specification's table (D8). */
const strictStatuses: Readonly<Record<number, number>> = {
  403: 401,
  409: 400,
  413: 400,
  415: 400,
  429: 500,
  503: 500,
};

/** The status of an error. */
export function statusOf({ status }: ApiError, strict: boolean): number {
  return (strict && strictStatuses[status]) || status;
}

/** Creates an error's reply (D7). */
export function errorReply(error: ApiError, strict: boolean): Reply {
  const { mailboxSize, retryAfterSeconds, requestId, closeConnection } = error.options;
  const headers: [string, string][] = [];
  if (mailboxSize !== undefined) headers.push(['X-Mailbox-Size', String(mailboxSize)]);
  if (retryAfterSeconds !== undefined) headers.push(['Retry-After', String(retryAfterSeconds)]);
  if (requestId !== undefined) headers.push(['X-Request-Id', requestId]);
  return createReply(statusOf(error, strict), JSON.stringify(error), headers, closeConnection);
}

const okBody = '{"ok":true}';

function withMailboxHeaders(head: string, size: number): string {
  return `${head}\r\nX-Messages-Available: ${size > 0}\r\nX-Mailbox-Size: ${size}`;
}

/** Creates a reply that tells the device what waits for it (D28): who has just sent something needs no heartbeat. */
export function createMailboxReply(
  status: number,
  body: string | Buffer | undefined,
  size: number,
  headers: ReplyHeaders = [],
): Reply {
  const head = withMailboxHeaders(headOf(status, 'application/json', headers), size);
  return body === undefined
    ? { status, head, tellsMailbox: true }
    : { status, head, body, tellsMailbox: true };
}

/** Sizes of nearly all mailboxes, for which constant replies are prepared: to copy an object costs 3 µs. */
const preparedSizes = 64;

/**
 * Creates the reply of every request of a kind. Not by `createMailboxReply`: the engine would see that what is made there
 * lives on, and put each later reply among what is old, where it is not collected for thirty thousand requests; a GET
 * next cost 15 to 20 % more.
 */
function constantReply(status: number, headers: ReplyHeaders = []): Reply {
  const reply = createReply(status, okBody, headers);
  const bySize = Array.from({ length: preparedSizes }, (_, size) => ({
    status,
    head: withMailboxHeaders(reply.head, size),
    body: okBody,
    tellsMailbox: true,
  }));
  return { ...reply, bySize };
}

/** Returns the reply with what waits for the device (D28). */
export function withMailbox(reply: Reply, size: number): Reply {
  return reply.bySize?.[size] ?? { ...reply, head: withMailboxHeaders(reply.head, size), tellsMailbox: true };
}

/** Reply of the heartbeat and of the send routes. */
export const storedReply = constantReply(201);
export const replayed = constantReply(201, [['Idempotent-Replayed', 'true']]);
/** Reply of a settlement. */
export const settledReply = constantReply(200);
