import type { TestServer } from './server.ts';

/** An answer of the admin API to the bearer of a token. */
export interface TokenAnswer {
  status: number;
  headers: Headers;
  body: Record<string, unknown>;
}

/** The bearer that the two halves of a new session make: the cookie of its answer, and the key in it. */
export function sessionBearer({ headers, body }: TokenAnswer): string {
  const [, half] = /^[\w-]+=([A-Z0-9]+);/.exec(headers.get('set-cookie') ?? '') ?? [];
  if (half === undefined) throw new Error(`no session: ${JSON.stringify(body)}`);
  return `FPT-${half}${body.key}`;
}

/** Makes a request with this token; without one if it is empty. A body that is no JSON document is an empty object. */
export async function as(
  server: TestServer,
  token: string,
  method: string,
  path: string,
  body?: object,
): Promise<TokenAnswer> {
  const response = await fetch(`${server.report.admin_url}/admin/v1${path}`, {
    method,
    headers: {
      ...(token !== '' && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  let parsed: Record<string, unknown> = {};
  try {
    parsed = JSON.parse(text) as Record<string, unknown>;
  } catch {
    // The answer is a 204 or lines of records.
  }
  return { status: response.status, headers: response.headers, body: parsed };
}
