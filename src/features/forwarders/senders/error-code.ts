/**
 * The code of an error of the network, or of its cause; undefined where there is none. The code alone is shown: what is
 * written of such an error can have parts of a certificate or an answer in it.
 */
export function errorCode(error: unknown): string | undefined {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,63}$/.test(code)) return code;
  return cause === undefined || cause === null ? undefined : errorCode(cause);
}
