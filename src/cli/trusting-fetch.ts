import { request } from 'node:https';
import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';

/** The part of `fetch` that the client of the admin API uses. */
export type Fetch = (
  url: string,
  init: { method: string; headers: Headers; body?: string | Uint8Array },
) => Promise<Response>;

/** Creates a `fetch` that trusts the certificates in `authority`, PEM, which that of Node cannot be told to. */
export function fetchTrusting(authority: string): Fetch {
  return (url, { method, headers, body }) =>
    new Promise((resolve, reject) => {
      const sent = request(url, { method, headers: Object.fromEntries(headers), ca: authority });
      // Once the response is there, its body fails with it.
      sent.on('error', reject);
      sent.once('response', (message) => {
        const { statusCode: status = 0 } = message;
        const content = status === 204 ? null : (Readable.toWeb(message) as ReadableStream<Uint8Array>);
        resolve(new Response(content as ConstructorParameters<typeof Response>[0], { status }));
      });
      sent.end(body);
    });
}
