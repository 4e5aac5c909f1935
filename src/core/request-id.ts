import { formatUuid, generateUuid } from './uuid.ts';

/** Of a proxy or a client in front, which has its own name for the request. */
const givenPattern = /^[A-Za-z0-9._-]{1,64}$/;

/** Under which a request is found in the log, and which its sender is answered as `X-Request-Id`. */
export function newRequestId(given?: unknown): string {
  return typeof given === 'string' && givenPattern.test(given) ? given : formatUuid(generateUuid());
}
