import { uuidv7 } from 'uuidv7';
import { expect } from 'vitest';
import type { TestServer } from '../server/server.ts';
import { type RawAnswer, RawConnection, requestText } from './raw.ts';

export interface Route {
  method: string;
  path: string;
  body?: string;
  /** Sends the body as one chunk, its length undeclared. */
  chunked?: boolean;
}

/** One request of every route that needs credentials, for a fleet of `createFleet` (section 4). */
export const routes: readonly Route[] = [
  { method: 'GET', path: '/v1' },
  { method: 'POST', path: '/v1/heartbeat' },
  { method: 'POST', path: '/v1/datapoint/reading', body: '{"a":1}' },
  { method: 'POST', path: '/v1/msg/note', body: '{"a":1}' },
  { method: 'GET', path: '/v1/mailbox/size' },
  { method: 'HEAD', path: '/v1/mailbox/next' },
  { method: 'GET', path: '/v1/mailbox/next' },
  { method: 'PUT', path: `/v1/mailbox/ack/${uuidv7()}` },
  { method: 'PUT', path: `/v1/mailbox/reject/${uuidv7()}` },
  { method: 'PUT', path: `/v1/mailbox/requeue/${uuidv7()}` },
  { method: 'POST', path: '/v1/sync', body: '{"records":[{"kind":"message","schema":"note"}]}' },
  { method: 'GET', path: '/v1/events' },
];

/** One request on a connection of its own, with exactly these headers besides Host and those of its body. */
export async function ask(
  server: TestServer,
  { method, path, body = '', chunked = false }: Route,
  headers: Record<string, string> = {},
): Promise<RawAnswer> {
  const connection = await RawConnection.open(server);
  const bytes = Buffer.byteLength(body);
  let framing: Record<string, string> = {};
  if (chunked) framing = { 'Transfer-Encoding': 'chunked' };
  else if (bytes > 0) framing = { 'Content-Length': String(bytes) };
  const chunk = bytes === 0 ? '' : `${bytes.toString(16)}\r\n${body}\r\n`;
  const sent = chunked ? `${chunk}0\r\n\r\n` : body;
  connection.write(requestText(method, path, { ...framing, ...headers }, sent));
  const answer = await connection.answer(method === 'HEAD');
  connection.destroy();
  return answer;
}

/** Every value of a header, as often as it came. */
export function valuesOf({ headers }: RawAnswer, name: string): string[] {
  return headers.filter(([header]) => header === name).map(([, value]) => value);
}

/** D7: the status, and a body of `error`, `msg` and `more`, no other field. */
export function expectError(
  answer: { status: number; text: string } | RawAnswer,
  status: number,
  error: string,
  more: object = {},
): void {
  const text = 'text' in answer ? answer.text : answer.body;
  const body: unknown = text === '' ? undefined : JSON.parse(text);
  expect({ status: answer.status, body }).toEqual({
    status,
    body: { error, msg: expect.stringMatching(/./), ...more },
  });
}
