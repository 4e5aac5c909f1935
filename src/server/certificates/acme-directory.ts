import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import type { axios } from 'acme-client';
import { plainText } from '../../core/plain-text.ts';

/** The part of the client library that exchanges requests, which it lets its user replace. */
type Adapter = Extract<typeof axios.defaults.adapter, (config: never) => unknown>;

const requestTimeoutMs = 30_000;
/** Far more than a certificate with its chain. */
const answerLengthMax = 262_144;
const detailLengthMax = 500;
/** No order is put off for longer, whatever a directory answers. */
const retryAfterSecondsMax = 7 * 86_400;
/** The client library repeats the request by itself. */
const badNonce = 'urn:ietf:params:acme:error:badNonce';

/** An order failed, for a reason that the operator should read. */
export class AcmeError extends Error {
  override name = 'AcmeError';
  /** True if the directory has not looked at the order, so that repeating it soon counts against no limit. */
  readonly isUnreachable: boolean;
  /** Time until which the directory wants no other order. */
  readonly retryAfterSeconds: number;

  constructor(message: string, { isUnreachable = false, retryAfterSeconds = 0 } = {}) {
    super(message);
    this.isUnreachable = isUnreachable;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** A problem document (RFC 7807), as far as it is one. */
export interface Problem {
  type?: unknown;
  detail?: unknown;
}

/**
 * Exchanges the requests of the client library with a directory. Instead of the library's own way, which waits as long
 * as the directory says, hides why a connection failed, and cannot be told to stop.
 * @throws AcmeError for whatever is no success.
 */
export function directoryAdapter({ caFile, signal }: { caFile: string; signal: AbortSignal }): Adapter {
  const ca = caFile === '' ? undefined : readFileSync(caFile);
  return async (config) => {
    const { url = '', method = 'get', data } = config;
    const answer = await exchange(
      url,
      { method, headers: config.headers.toJSON() as Record<string, string>, ca, signal },
      typeof data === 'string' ? data : '',
    );
    const { status, headers, text } = answer;
    const problem = status < 400 ? undefined : problemOf(text);
    if (problem !== undefined && problem.type !== badNonce) throw refusal(answer, problem);
    return { status, statusText: '', headers: headers as Record<string, string>, data: text, config };
  };
}

/** Says what the directory answered, as text from outside: bounded, and without control characters. */
export function problemText({ type, detail }: Problem): string {
  const kind = typeof type === 'string' ? type.replace(/^urn:ietf:params:acme:error:/, '') : '';
  const parts = [kind, typeof detail === 'string' ? detail : ''].filter((part) => part !== '');
  return plainText(parts.join(': ').slice(0, detailLengthMax)) || 'no reason given';
}

/** Reads `Retry-After`: seconds or a date; 0 if there is none. */
export function retryAfterSecondsOf(header: string | undefined, nowMs: number): number {
  if (header === undefined) return 0;
  const seconds = /^\d+$/.test(header) ? Number(header) : (Date.parse(header) - nowMs) / 1_000;
  return seconds > 0 ? Math.min(Math.ceil(seconds), retryAfterSecondsMax) : 0;
}

function refusal({ status, headers }: Answer, problem: Problem): AcmeError {
  return new AcmeError(`The ACME directory answered ${status}: ${problemText(problem)}`, {
    isUnreachable: status >= 500,
    retryAfterSeconds: retryAfterSecondsOf(headers['retry-after'], Date.now()),
  });
}

function problemOf(text: string): Problem {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? parsed : {};
  } catch {
    return {};
  }
}

interface RequestOptions {
  method: string;
  headers: Record<string, string>;
  ca: Buffer | undefined;
  signal: AbortSignal;
}

async function exchange(url: string, options: RequestOptions, body: string): Promise<Answer> {
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(requestTimeoutMs)]);
  try {
    // A connection each: an order has about ten requests, and none of them fails because an idle one was closed.
    return await send(url, { ...options, agent: false, signal }, body);
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    const reason = message === '' ? code : message;
    throw new AcmeError(`The ACME directory cannot be reached at ${plainText(url)}: ${reason}.`, {
      isUnreachable: true,
    });
  }
}

function send(url: string, options: RequestOptions & { agent: false }, body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { ...options, method: options.method.toUpperCase() }, (response) => {
      const { statusCode: status = 0, headers } = response;
      let text = '';
      response
        .setEncoding('utf8')
        .on('data', (chunk: string) => {
          text += chunk;
          if (text.length > answerLengthMax) response.destroy(new Error('its answer is too long'));
        })
        .once('end', () => resolve({ status, headers, text }))
        .once('error', reject);
    });
    sent.once('error', reject).end(body);
  });
}
