import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { ErrorDocument, ListDocument } from '../contract/document.ts';
import type { AnswerAt, BodyAt, ItemAt, MethodOf, Path, QueryAt, Template } from '../contract/routes/path.ts';
import { type FieldError, OperatorError } from '../core/errors.ts';
import { type Fetch, fetchTrusting } from './trusting-fetch.ts';

type Value = string | number | boolean;
/** Query parameters. One with several values is repeated; an undefined one is left out. */
export type Parameters = Readonly<Record<string, Value | readonly Value[] | undefined>>;

function queryOf(parameters: Parameters): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, values] of Object.entries(parameters)) {
    for (const value of [values].flat()) if (value !== undefined) query.append(name, String(value));
  }
  return query;
}

/** A request that the server refused. */
export class RefusedError extends OperatorError {
  readonly code: string | undefined;
  /** The faults as a whole, and of each field. */
  readonly summary: string;
  readonly fields: readonly FieldError[];

  constructor(message: string, { error, errors = [] }: Partial<ErrorDocument> = {}) {
    super(sentenceOf(message, errors, ({ path }) => (path === '' ? 'it' : path)));
    this.code = error;
    this.summary = message;
    this.fields = errors;
  }
}

/** Query, body and headers of a request. The body is a value to send as JSON, or JSON text to send byte for byte. */
export interface RequestParts<Document = unknown, Query = Parameters> {
  query?: Query;
  json?: Document;
  bytes?: Uint8Array;
  headers?: Readonly<Record<string, string>> | undefined;
}

const pageItemsMax = 1_000;

/** Client of a server's admin API. Every method throws an OperatorError if refused or unreachable. */
export class AdminClient {
  readonly #url: string;
  readonly #token: string;
  readonly #authority: string | undefined;
  readonly #fetch: Fetch;

  /** `url` is the server's, without a path; `authority`, PEM, is trusted instead of the usual ones. */
  constructor({ url, token, authority }: { url: string; token: string; authority?: string | undefined }) {
    this.#url = url.replace(/\/+$/, '');
    this.#token = token;
    this.#authority = authority;
    // Looked up at each use: tests watch it.
    this.#fetch = authority === undefined ? (...request) => fetch(...request) : fetchTrusting(authority);
  }

  /** URL of the server, without a path. */
  get url(): string {
    return this.#url;
  }

  /** Returns the documented answer of the route; undefined for 204. */
  async request<M extends MethodOf<T>, T extends Template>(
    method: M,
    path: Path<T>,
    parts?: RequestParts<BodyAt<M, T>, QueryAt<M, T>>,
  ): Promise<AnswerAt<M, T>>;
  async request(method: string, path: string, parts?: RequestParts): Promise<unknown> {
    const text = await this.requestText(method, path, parts);
    return text === '' ? undefined : JSON.parse(text);
  }

  /** Returns the response text unchanged. */
  async requestText(method: string, path: string, parts?: RequestParts): Promise<string> {
    const response = await this.open(method, path, parts);
    return response.text();
  }

  /** Lists up to `limit` items after `after`, over as many pages as needed. */
  async list<T extends Template>(
    path: Path<T>,
    { after, limit }: { after?: string; limit: number },
    query?: QueryAt<'GET', T>,
    pageMax = pageItemsMax,
  ): Promise<ListDocument<ItemAt<T>>> {
    const items: ItemAt<T>[] = [];
    let next: string | null = null;
    const part = { ...(after !== undefined && { after }), limit, pageMax };
    for await (const page of this.pages(path, query, part)) {
      items.push(...page.items);
      next = page.next;
    }
    return { items, next };
  }

  /** Yields the pages of a list, up to `limit` items after `after`. */
  pages<T extends Template>(
    path: Path<T>,
    query?: QueryAt<'GET', T>,
    part?: { after?: string; limit?: number; pageMax?: number },
  ): AsyncGenerator<ListDocument<ItemAt<T>>>;
  async *pages(
    path: string,
    query: Parameters = {},
    {
      after,
      limit = Number.POSITIVE_INFINITY,
      pageMax = pageItemsMax,
    }: { after?: string; limit?: number; pageMax?: number } = {},
  ): AsyncGenerator<ListDocument<unknown>> {
    let next: string | null = after ?? null;
    let count = 0;
    do {
      const part = { limit: Math.min(limit - count, pageMax), ...(next !== null && { after: next }) };
      const text = await this.requestText('GET', path, { query: { ...query, ...part } });
      const page: ListDocument<unknown> = JSON.parse(text);
      count += page.items.length;
      next = page.next;
      yield page;
    } while (next !== null && count < limit);
  }

  /**
   * POSTs a body while its response is already arriving, which `fetch` cannot do. Returns a 200 whose body has not been
   * read; reading it fails if either side breaks off.
   */
  async exchange(path: string, contentType: string, body: Readable): Promise<IncomingMessage> {
    const url = new URL(`${this.#url}/admin/v1${path}`);
    const headers = { Authorization: `Bearer ${this.#token}`, 'Content-Type': contentType };
    const send = url.protocol === 'https:' ? requestHttps : requestHttp;
    const request = send(url, { method: 'POST', headers, ca: this.#authority });
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
    throw refusal(response.statusCode ?? 0, await text(response));
  }

  /** Returns a successful response whose body has not been read. `path` is relative to `/admin/v1`. */
  async open(
    method: string,
    path: string,
    { query = {}, json, bytes, headers }: RequestParts = {},
  ): Promise<Response> {
    const text = queryOf(query).toString();
    const body = json === undefined ? bytes : JSON.stringify(json);
    let response: Response;
    try {
      response = await this.#fetch(`${this.#url}/admin/v1${path}${text && `?${text}`}`, {
        method,
        headers: new Headers({
          ...headers,
          Authorization: `Bearer ${this.#token}`,
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
        }),
        ...(body !== undefined && { body }),
      });
    } catch (error) {
      throw unreachable(this.#url, error as Error);
    }
    if (response.ok) return response;
    throw refusal(response.status, await response.text());
  }
}

/** True if an error of TLS says that nobody trusted vouches for the certificate. */
function isUntrusted(code = ''): boolean {
  return /^(UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/.test(code);
}

function unreachable(url: string, error: Error): OperatorError {
  const { code, message: reason } = (error.cause ?? error) as { code?: string; message?: string };
  if (code === 'ECONNREFUSED') return new OperatorError(`No server is listening at ${url}. Is it running?`);
  if (isUntrusted(code)) {
    return new OperatorError(
      `The certificate of ${url} is not trusted (${reason}): name its authority with --admin-ca FILE.`,
    );
  }
  return new OperatorError(`The server at ${url} is unreachable: ${reason}.`);
}

/** Appends what is wrong with each field, in words for the user. */
export function sentenceOf(
  message: string,
  fields: readonly FieldError[],
  nameOf: (field: FieldError) => string,
): string {
  if (fields.length === 0) return message;
  const details = fields.map((field) => `${nameOf(field)} ${field.msg}`);
  return `${message.replace(/\.$/, '')}: ${details.join('; ')}.`;
}

function refusal(status: number, text: string): RefusedError {
  let document: Partial<ErrorDocument> = {};
  try {
    document = JSON.parse(text) as Partial<ErrorDocument>;
  } catch {
    // Not from Fleetpost: reported below.
  }
  if (typeof document?.msg !== 'string')
    return new RefusedError(`The server answered with status ${status}; is it Fleetpost's admin API?`);
  return new RefusedError(document.msg, document);
}
