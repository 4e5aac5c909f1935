import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../core/errors.ts';
import { isLoopback } from '../../core/host-port.ts';

/**
 * Why a request must not reach a listener that whoever is on this machine can open a connection to (D27): a page of some
 * site, in a browser here, whose name was made to lead to this address, or which asks across sites.
 */
export function hostRefusal({ headers, socket }: IncomingMessage, adminHosts: string): ApiError | undefined {
  const { host, 'sec-fetch-site': site } = headers;
  if (site === 'cross-site' || site === 'same-site') {
    return new ApiError('host_refused', { msg: 'A page of another site may not ask the admin API.' });
  }
  // A balancer that speaks HTTP/1.0 sends none; a browser always does.
  if (host === undefined) return undefined;
  const name = host
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
  if (isLoopback(name) || name === socket.localAddress) return undefined;
  if (name !== '' && adminHosts.split(',').some((allowed) => allowed.trim().toLowerCase() === name)) {
    return undefined;
  }
  return new ApiError('host_refused');
}
