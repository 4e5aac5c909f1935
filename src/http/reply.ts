import type { ApiError } from '../core/errors.ts';
import type { EventStream } from './event-stream.ts';

/** What a handler returns. The common headers of D22 are added where it is written. */
export interface Reply {
  status: number;
  /** Absent: no body byte and no Content-Length. */
  body?: string | Buffer;
  headers?: readonly (readonly [string, string])[];
  closeConnection?: boolean;
  /** In place of a body: the response stays open and belongs to the stream. */
  stream?: EventStream;
}

export const statusLines: Readonly<Record<number, string>> = {
  200: '200 OK',
  201: '201 Created',
  204: '204 No Content',
  400: '400 Bad Request',
  401: '401 Unauthorized',
  404: '404 Not Found',
  409: '409 Conflict',
  413: '413 Content Too Large',
  415: '415 Unsupported Media Type',
  429: '429 Too Many Requests',
  500: '500 Internal Server Error',
  503: '503 Service Unavailable',
};

/** D8: for devices that know only the specification's table. */
const strictStatuses: Readonly<Record<number, number>> = { 409: 400, 413: 400, 415: 400, 429: 500, 503: 500 };

/** D7. */
export function errorReply(error: ApiError, strict: boolean): Reply {
  const { mailboxSize, retryAfterSeconds, closeConnection } = error.options;
  const headers: [string, string][] = [];
  if (mailboxSize !== undefined) headers.push(['X-Mailbox-Size', String(mailboxSize)]);
  if (retryAfterSeconds !== undefined) headers.push(['Retry-After', String(retryAfterSeconds)]);
  const status = (strict && strictStatuses[error.status]) || error.status;
  return {
    status,
    body: JSON.stringify(error),
    headers,
    ...(closeConnection && { closeConnection }),
  };
}

const okBody = '{"ok":true}';

/** 201 of the send routes. */
export const stored: Reply = { status: 201, body: okBody };
export const replayed: Reply = { status: 201, body: okBody, headers: [['Idempotent-Replayed', 'true']] };

export function settled(mailboxSize: number): Reply {
  return { status: 200, body: okBody, headers: [['X-Mailbox-Size', String(mailboxSize)]] };
}

const heartbeats = {
  empty: { status: 201, body: okBody, headers: [['X-Messages-Available', 'false']] },
  waiting: { status: 201, body: okBody, headers: [['X-Messages-Available', 'true']] },
} as const;

export function heartbeat(available: boolean): Reply {
  return available ? heartbeats.waiting : heartbeats.empty;
}
