import type { IncomingHttpHeaders } from 'node:http';

/** The server takes no larger body (D9). */
export const payloadBytesMax = 65_536;
const retryAfterSecondsMax = 3_600;

/** A whole answer of the server. */
export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** The code and the sentence of an error, both empty if the answer has none. */
export function serverErrorOf({ body }: Answer): { code: string; msg: string } {
  try {
    const found = JSON.parse(body.toString()) as { error?: unknown; msg?: unknown } | null;
    return { code: String(found?.error ?? ''), msg: String(found?.msg ?? '').slice(0, 500) };
  } catch {
    return { code: '', msg: '' };
  }
}

/** Seconds that `Retry-After` asks for, at most an hour. */
export function retryAfterSeconds({ headers }: Answer): number | undefined {
  const text = headers['retry-after'] ?? '';
  return /^\d+$/.test(text) ? Math.min(Number(text), retryAfterSecondsMax) : undefined;
}

/** Tells whether the server refused a request for good: sending it again would be refused again. */
export function isFinal({ status }: Answer): boolean {
  return status >= 400 && status < 500 && ![401, 403, 408, 425, 429].includes(status);
}
