import { signal } from '@preact/signals';
import { pageKeyHeader } from '../../contract/access/page-key.ts';
import type { ErrorDocument } from '../../contract/document.ts';
import type { AnswerAt, BodyAt, MethodOf, Path, QueryAt, Template } from '../../contract/routes/path.ts';
import { access, endSession, nextSession, pageKey } from '../session/session-state.ts';
import { CallError } from './call-error.ts';
import { adjustClock } from './clock.ts';
import { parseExactly } from './exact-json.ts';

const timeoutMs = 30_000;
const api = '/admin/v1';

/** When the server stopped answering; undefined while it does. */
export const unreachableSince = signal<number | undefined>(undefined);

export type Query = Record<string, string | number | boolean | readonly string[] | undefined>;

export interface RequestOptions<Parameters = Query, Document = unknown> {
  query?: Parameters;
  /** Sent as JSON; a text or a file as it is. */
  body?: Document | string | Blob | undefined;
  contentType?: string;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
  /** Part of a login: that it is refused says nothing of the session there is. */
  isLogin?: boolean;
}

/** A path of the API with its parameters, each encoded. */
export function apiUrl(path: string, query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined || value === '') continue;
    for (const one of Array.isArray(value) ? value : [value]) parameters.append(key, String(one));
  }
  const text = parameters.toString();
  return `${api}${path}${text && `?${text}`}`;
}

/** Sends a request and returns its successful answer, whose body is yet to be read. @throws CallError. */
export async function open(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const { query, body, contentType = 'application/json', headers, signal: stopping, isLogin } = options;
  const key = pageKey();
  const isRaw = typeof body === 'string' || body instanceof Blob;
  let response: Response;
  try {
    response = await fetch(apiUrl(path, query), {
      method,
      credentials: 'same-origin',
      headers: {
        ...(key !== undefined && { [pageKeyHeader]: key }),
        ...(body !== undefined && { 'Content-Type': contentType }),
        ...headers,
      },
      ...(body !== undefined && { body: isRaw ? body : JSON.stringify(body) }),
      ...(stopping && { signal: stopping }),
    });
  } catch (error) {
    if (stopping?.aborted && stopping.reason !== timedOut) throw error;
    unreachableSince.value ??= Date.now();
    throw new CallError(0, { error: 'unreachable', msg: 'The server does not answer.' });
  }
  unreachableSince.value = undefined;
  adjustClock(response.headers.get('date'));
  if (response.ok) return response;
  const failure = await failureOf(response);
  if (response.status !== 401 || isLogin) throw failure;
  // Another tab has logged in meanwhile.
  if (pageKey() !== key) return open(method, path, options);
  endSession(key === undefined ? 'Your session has ended (this browser has forgotten it).' : failure.message);
  throw failure;
}

async function failureOf(response: Response): Promise<CallError> {
  const fallback = { error: 'unexpected_answer', msg: `The server answered ${response.status}.` };
  const document: unknown = await response.json().catch(() => fallback);
  const isError = typeof document === 'object' && document !== null && 'error' in document;
  return new CallError(response.status, isError ? (document as ErrorDocument) : fallback);
}

const timedOut = 'timed out';

/**
 * Sends a request and returns its document, numbers in payloads as they were written. One that only reads waits for the
 * next session, if this one has ended. @throws CallError.
 */
export async function call<M extends MethodOf<T>, T extends Template>(
  method: M,
  path: Path<T>,
  options?: RequestOptions<QueryAt<M, T>, BodyAt<M, T>>,
): Promise<AnswerAt<M, T>>;
export async function call(method: string, path: string, options: RequestOptions = {}): Promise<unknown> {
  for (;;) {
    try {
      return await callOnce(method, path, options);
    } catch (error) {
      if (method !== 'GET' || !isOfEndedSession(error)) throw error;
      await nextSession(options.signal);
    }
  }
}

/** True for what failed because the session ended; the page waits for the next. */
export function isOfEndedSession(error: unknown): boolean {
  return error instanceof CallError && error.status === 401 && access.value === 'ended';
}

async function callOnce(method: string, path: string, options: RequestOptions): Promise<unknown> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(timedOut), timeoutMs);
  const signals = [controller.signal, ...(options.signal ? [options.signal] : [])];
  try {
    const response = await open(method, path, { ...options, signal: AbortSignal.any(signals) });
    const text = await response.text();
    return text === '' ? undefined : parseExactly(text);
  } finally {
    clearTimeout(timer);
  }
}
