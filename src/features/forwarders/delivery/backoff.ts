export interface BackoffLimits {
  firstMs: number;
  longestMs: number;
}

/**
 * How long until the attempt behind this one, from 1: twice as long each time, and somewhere in the upper half of that,
 * so that lanes that failed together do not come back together. What the receiver asks for holds where it is longer.
 */
export function waitOf(attempt: number, { firstMs, longestMs }: BackoffLimits, retryAfterMs = 0): number {
  const nominal = Math.min(longestMs, firstMs * 2 ** Math.min(attempt - 1, 40));
  const jittered = nominal * (0.5 + Math.random() / 2);
  return Math.min(longestMs, Math.max(jittered, retryAfterMs));
}
