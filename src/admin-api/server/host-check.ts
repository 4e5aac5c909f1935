import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { isLoopback } from '../../core/address.ts';
import { certificateHosts, type TlsFiles } from '../../core/config/tls.ts';
import { ApiError } from '../../core/errors.ts';

/**
 * Returns why a request must not reach a listener that is open to everything on this machine (D27): against pages in a
 * browser, by DNS rebinding or by cross-site requests. `allowedHosts` are those besides loopback and the listener's own
 * address.
 */
export function hostRefusal(
  { headers, socket }: IncomingMessage,
  allowedHosts: readonly string[],
): ApiError | undefined {
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
  if (name !== '' && allowedHosts.includes(name)) return undefined;
  return new ApiError('host_refused');
}

/**
 * True for a request that a page of the console itself made, by what its browser says; pages cannot change what it says.
 * A browser without Sec-Fetch-Site still names the Origin of what is no GET.
 */
export function isOfOwnPage({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const { host, origin = '', 'sec-fetch-site': site } = headers;
  if (site !== undefined) return site === 'same-origin';
  return host !== undefined && URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}

/** Returns the names in `adminHosts`. */
export function configuredHosts(adminHosts: string): string[] {
  return adminHosts.split(',').map((host) => host.trim().toLowerCase());
}

/**
 * Returns the names in the listener's certificate that it answers to (D27). The operator had them put there, and
 * rebinding cannot use them: the browser refuses the connection of a page whose name is not in the certificate, before
 * there is a request. A wildcard is left out, since a name below it may be someone else's: such a page has a
 * valid certificate.
 */
export function certifiedHosts({ certFile }: TlsFiles): string[] {
  const hosts = certificateHosts(new X509Certificate(readFileSync(certFile)));
  return hosts.filter((host) => !host.startsWith('*')).map((host) => host.toLowerCase());
}
