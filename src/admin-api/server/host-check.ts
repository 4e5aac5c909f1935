import type { IncomingMessage } from 'node:http';
import { isLoopback } from '../../core/address.ts';
import { ApiError } from '../../core/errors.ts';

/**
 * Returns why a request must not reach a listener that is open to everything on this machine (D27): against pages in a
 * browser, by DNS rebinding or by cross-site requests.
 */
export function hostRefusal({ headers, socket }: IncomingMessage, adminHosts: string): ApiError | undefined {
  const { host, 'sec-fetch-site': site } = headers;
  if (site === 'cross-site' || site === 'same-site') {
    return new ApiError('host_refused', { msg: 'The admin API refuses requests of pages of other sites.' });
  }
  // A balancer that speaks HTTP/1.0 sends no Host; a browser always does.
  if (host === undefined) return undefined;
  const name = host
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
  if (isLoopback(name) || name === socket.localAddress?.replace(/^::ffff:/, '')) return undefined;
  if (name !== '' && adminHosts.split(',').some((allowed) => allowed.trim().toLowerCase() === name)) {
    return undefined;
  }
  return new ApiError('host_refused');
}
