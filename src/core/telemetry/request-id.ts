import { formatUuid, generateUuid } from '../uuid.ts';

/** A request id from a proxy or client in front. */
const upstreamPattern = /^[A-Za-z0-9._-]{1,64}$/;

/** Correlates a request in the log with its answer's `X-Request-Id`; adopts a valid `upstream` id. */
export function newRequestId(upstream?: unknown): string {
  return typeof upstream === 'string' && upstreamPattern.test(upstream)
    ? upstream
    : formatUuid(generateUuid());
}
