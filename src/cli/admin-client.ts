import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { OperatorError } from '../core/errors.ts';

/** A page of a list: `next` is the cursor of the next page, null on the last. */
export interface List<T> {
  items: T[];
  next: string | null;
}

/** Query parameters of a list; one with several values is repeated. */
export type ListFilter = Readonly<Record<string, string | readonly string[]>>;

export function queryOf(filter: ListFilter): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, values] of Object.entries(filter)) {
    for (const value of [values].flat()) query.append(name, value);
  }
  return query;
}

/** A value to send as JSON, or JSON text to send byte for byte. */
export type Body = { json: unknown } | { bytes: Uint8Array };

interface ErrorDocument {
  error?: unknown;
  msg?: unknown;
  errors?: { path: string; msg: string }[];
}

const pageItemsMax = 1_000;

/** Client of a server's admin API. Every method throws an OperatorError if refused or unreachable. */
export class AdminClient {
  readonly #url: string;
  readonly #token: string;

  /** `url` is the server's, without a path. */
  constructor({ url, token }: { url: string; token: string }) {
    this.#url = url.replace(/\/+$/, '');
    this.#token = token;
  }

  /** `T` is the documented response of the route; undefined for 204. */
  async request<T>(method: string, path: string, body?: Body, extraHeaders?: Headers): Promise<T> {
    const text = await this.requestText(method, path, body, extraHeaders);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  /** Returns the response text unchanged. */
  async requestText(method: string, path: string, body?: Body, extraHeaders?: Headers): Promise<string> {
    const response = await this.open(method, path, body, extraHeaders);
    return response.text();
  }

  /** Lists up to `limit` items after `after`, over as many pages as needed. */
  async list<T>(
    path: string,
    { after, limit }: { after?: string; limit: number },
    filter: ListFilter = {},
    pageMax = pageItemsMax,
  ): Promise<List<T>> {
    const items: T[] = [];
    let next: string | null = after ?? null;
    do {
      const pageLimit = Math.min(limit - items.length, pageMax);
      const query = queryOf({ ...filter, limit: String(pageLimit) });
      if (next !== null) query.set('after', next);
      const page: List<T> = await this.request('GET', `${path}?${query}`);
      items.push(...page.items);
      next = page.next;
    } while (next !== null && items.length < limit);
    return { items, next };
  }

  /**
   * POSTs a body while its response is already arriving, which `fetch` cannot do. Returns a 200 whose body has not been
   * read; reading it fails if either side breaks off.
   */
  async exchange(path: string, contentType: string, body: Readable): Promise<IncomingMessage> {
    const url = new URL(`${this.#url}/admin/v1${path}`);
    const headers = { Authorization: `Bearer ${this.#token}`, 'Content-Type': contentType };
    const send = url.protocol === 'https:' ? requestHttps : requestHttp;
    const request = send(url, { method: 'POST', headers });
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve);
      request.once('error', (error) => reject(unreachable(this.#url, error)));
      body.once('error', (error) => reject(new OperatorError(`The file cannot be read: ${error.message}.`)));
      body.pipe(request);
    });
    // The response fails with it and reports the error.
    request.on('error', () => {});
    if (response.statusCode === 200) return response;
    body.unpipe();
    throw new OperatorError(errorText(response.statusCode ?? 0, await text(response)));
  }

  /** Returns a successful response whose body has not been read. `path` is relative to `/admin/v1`. */
  async open(method: string, path: string, body?: Body, extraHeaders?: Headers): Promise<Response> {
    const headers = new Headers(extraHeaders);
    headers.set('Authorization', `Bearer ${this.#token}`);
    if (body !== undefined) headers.set('Content-Type', 'application/json');
    let response: Response;
    try {
      response = await fetch(`${this.#url}/admin/v1${path}`, {
        method,
        headers,
        ...(body !== undefined && { body: 'json' in body ? JSON.stringify(body.json) : body.bytes }),
      });
    } catch (error) {
      throw unreachable(this.#url, error as Error);
    }
    if (response.ok) return response;
    throw new OperatorError(errorText(response.status, await response.text()));
  }
}

/** Joins escaped path segments: `pathOf('fleets', id)` is `/fleets/ID`. */
export function pathOf(...segments: string[]): string {
  return segments.map((segment) => `/${encodeURIComponent(segment)}`).join('');
}

function unreachable(url: string, error: Error): OperatorError {
  const { code, message: reason } = (error.cause ?? error) as { code?: string; message?: string };
  if (code === 'ECONNREFUSED') return new OperatorError(`No server is listening at ${url}. Is it running?`);
  return new OperatorError(`The server at ${url} is unreachable: ${reason}.`);
}

function errorText(status: number, text: string): string {
  let document: ErrorDocument = {};
  try {
    document = JSON.parse(text) as ErrorDocument;
  } catch {
    // Not from Fleetpost: reported below.
  }
  if (typeof document?.msg !== 'string')
    return `The server answered with status ${status}; is it Fleetpost's admin API?`;
  const details = (document.errors ?? []).map(({ path, msg }) => `${path === '' ? 'it' : path} ${msg}`);
  if (details.length === 0) return document.msg;
  return `${document.msg.replace(/\.$/, '')}: ${details.join('; ')}.`;
}
