import { connect, type LookupFunction } from 'node:net';
import { isAnyHostAllowed } from '../declaration/forward-hosts.ts';
import type { Destination } from '../declaration/forwarder.ts';
import { allowedLookup, errorCode } from './allowed-lookup.ts';

const resolveAllowed = allowedLookup() as LookupFunction;
const timeoutMs = 2_000;
const defaultPorts: Readonly<Record<string, number>> = { 'https:': 443, 'http:': 80 };
const natsPort = 4222;

/** Why no server of a destination takes connections now; undefined if one does. Nothing is sent to it. */
export async function unreachableReason(
  destination: Destination,
  forwardHosts: string,
): Promise<string | undefined> {
  const urls = destination.type === 'webhook' ? [destination.url] : destination.servers;
  const reasons = await Promise.all(
    urls.map((url) => reasonOf(new URL(url), isAnyHostAllowed(forwardHosts))),
  );
  return reasons.includes(undefined) ? undefined : reasons.join('; ');
}

function reasonOf({ hostname, port, protocol }: URL, isAny: boolean): Promise<string | undefined> {
  const host = hostname.replace(/^\[|\]$/g, '');
  const number = port === '' ? (defaultPorts[protocol] ?? natsPort) : Number(port);
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port: number,
      ...(isAny && { lookup: resolveAllowed }),
      timeout: timeoutMs,
    });
    const end = (why?: string): void => {
      socket.destroy();
      resolve(why === undefined ? undefined : `${hostname}:${number} takes no connections (${why})`);
    };
    socket.once('connect', () => end());
    socket.once('timeout', () => end(`no answer within ${timeoutMs / 1_000} seconds`));
    socket.once('error', (error) => end(errorCode(error) ?? 'unknown'));
  });
}
