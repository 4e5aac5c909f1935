import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { OperatorError } from '../core/errors.ts';

/** What the admin API answers to a list: `next` is the cursor of the next page, null on the last. */
export interface List<T> {
  items: T[];
  next: string | null;
}

/** Filters of a list; one with several values is given again for each. */
export type Wanted = Readonly<Record<string, string | readonly string[]>>;

export function queryOf(wanted: Wanted): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, values] of Object.entries(wanted)) {
    for (const value of [values].flat()) query.append(name, value);
  }
  return query;
}

/** A body as it goes out: JSON of a value, or JSON text that is sent byte for byte. */
export type Body = { json: unknown } | { bytes: Uint8Array };

interface ErrorDocument {
  error?: unknown;
  msg?: unknown;
  errors?: { path: string; msg: string }[];
}

const pageItemsMax = 1_000;

/** The admin API of a running server. Every method throws an OperatorError when it is refused or not there. */
export class AdminClient {
  readonly #url: string;
  readonly #token: string;

  /** `url` is that of the server, without a path. */
  constructor({ url, token }: { url: string; token: string }) {
    this.#url = url.replace(/\/+$/, '');
    this.#token = token;
  }

  /** `T` is what the route is documented to answer; undefined for 204. */
  async request<T>(method: string, path: string, body?: Body, more?: Headers): Promise<T> {
    const text = await this.requestText(method, path, body, more);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  /** The answer's text as it came. */
  async requestText(method: string, path: string, body?: Body, more?: Headers): Promise<string> {
    const response = await this.open(method, path, body, more);
    return response.text();
  }

  /** Items from the one after `after`, over as many pages as it takes to have `limit` of those that are wanted. */
  async list<T>(
    path: string,
    { after, limit }: { after?: string; limit: number },
    wanted: Wanted = {},
    pageMax = pageItemsMax,
  ): Promise<List<T>> {
    const items: T[] = [];
    let next: string | null = after ?? null;
    do {
      const pageLimit = Math.min(limit - items.length, pageMax);
      const query = queryOf({ ...wanted, limit: String(pageLimit) });
      if (next !== null) query.set('after', next);
      const page: List<T> = await this.request('GET', `${path}?${query}`);
      items.push(...page.items);
      next = page.next;
    } while (next !== null && items.length < limit);
    return { items, next };
  }

  /**
   * POSTs a body while its answer is already coming, which `fetch` does not do. A success whose body has not
   * been read; it fails when either side breaks off.
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
    // Told by the answer, which breaks off with it.
    request.on('error', () => {});
    if (response.statusCode === 200) return response;
    body.unpipe();
    throw new OperatorError(sentence(response.statusCode ?? 0, await text(response)));
  }

  /** A success whose body has not been read. `path` is what comes after `/admin/v1`; `more` are headers. */
  async open(method: string, path: string, body?: Body, more?: Headers): Promise<Response> {
    const headers = new Headers(more);
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
    throw new OperatorError(sentence(response.status, await response.text()));
  }
}

/** Path segments, each escaped: `pathOf('fleets', id)` is `/fleets/ID`. */
export function pathOf(...segments: string[]): string {
  return segments.map((segment) => `/${encodeURIComponent(segment)}`).join('');
}

function unreachable(url: string, error: Error): OperatorError {
  const { code, message: reason } = (error.cause ?? error) as { code?: string; message?: string };
  if (code === 'ECONNREFUSED') return new OperatorError(`No server answers at ${url}. Is it running?`);
  return new OperatorError(`The server at ${url} cannot be reached: ${reason}.`);
}

function sentence(status: number, text: string): string {
  let document: ErrorDocument = {};
  try {
    document = JSON.parse(text) as ErrorDocument;
  } catch {
    // Not from Fleetpost: said below.
  }
  if (typeof document?.msg !== 'string')
    return `The server answered with status ${status}; is it Fleetpost's admin API?`;
  const places = (document.errors ?? []).map(({ path, msg }) => `${path === '' ? 'it' : path} ${msg}`);
  if (places.length === 0) return document.msg;
  return `${document.msg.replace(/\.$/, '')}: ${places.join('; ')}.`;
}
