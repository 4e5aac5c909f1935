import { connect, type LookupFunction } from 'node:net';
import { isAnyHostAllowed } from '../declaration/forward-hosts.ts';
import type { Destination } from '../declaration/forwarder.ts';
import { kindOf } from '../destinations/destinations.ts';
import { allowedLookup, errorCode, lookupOf } from './allowed-lookup.ts';

const timeoutMs = 2_000;

/** Why no server of a destination takes connections now; undefined if one does. Nothing is sent to it. */
export async function unreachableReason(
  fleetId: string,
  destination: Destination,
  forwardHosts: string,
): Promise<string | undefined> {
  const kind = kindOf(destination);
  const lookup = allowedLookup(lookupOf(fleetId), !isAnyHostAllowed(forwardHosts)) as LookupFunction;
  const reasons = await Promise.all(
    kind.urlsOf(destination).map((text) => {
      const url = new URL(text);
      return reasonOf(url.hostname, Number(url.port || kind.ports[url.protocol]), lookup);
    }),
  );
  return reasons.includes(undefined) ? undefined : reasons.join('; ');
}

function reasonOf(hostname: string, port: number, lookup: LookupFunction): Promise<string | undefined> {
  const host = hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve) => {
    const socket = connect({ host, port, lookup, timeout: timeoutMs });
    const end = (why?: string): void => {
      socket.destroy();
      resolve(why === undefined ? undefined : `${hostname}:${port} takes no connections (${why})`);
    };
    socket.once('connect', () => end());
    socket.once('timeout', () => end(`no answer within ${timeoutMs / 1_000} seconds`));
    socket.once('error', (error) => end(errorCode(error) ?? 'unknown'));
  });
}
