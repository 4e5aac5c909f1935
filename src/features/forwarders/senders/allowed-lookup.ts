import { type LookupAddress, type LookupAllOptions, type LookupOptions, lookup } from 'node:dns';
import { isLinkLocal } from '../declaration/forward-hosts.ts';

/**
 * Code of a network error, or of its cause. Only the code may be shown: messages of such errors may contain parts of
 * a certificate or an answer.
 */
export function errorCode(error: unknown): string | undefined {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,63}$/.test(code)) return code;
  return cause === undefined || cause === null ? undefined : errorCode(cause);
}

/** Code of a lookup that found forbidden addresses only. */
export const forbiddenAddressCode = 'ERR_FORBIDDEN_ADDRESS';
export const forbiddenAddressReason =
  'The host resolves to a forbidden address: add the host to forwardHosts.';

type ResolveAll = (
  host: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;
type Done = (
  error: NodeJS.ErrnoException | null,
  address?: string | LookupAddress[],
  family?: number,
) => void;

/**
 * Replaces `dns.lookup` for a connection and returns allowed addresses only. Checks them when connecting, since a name
 * may resolve differently than in any earlier check.
 */
export function allowedLookup(resolve: ResolveAll = lookup) {
  return (host: string, options: LookupOptions, done: Done): void => {
    resolve(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return done(error);
      const allowed = addresses.filter(({ address }) => !isLinkLocal(address));
      const [first] = allowed;
      if (first === undefined) return done(Object.assign(new Error(), { code: forbiddenAddressCode }));
      if (options.all) done(null, allowed);
      else done(null, first.address, first.family);
    });
  };
}

/** Resolves a host to its allowed addresses; to all if the host is named in forwardHosts. @throws Error with a code. */
export function addressesOf(host: string, isNamed: boolean): Promise<string[]> {
  const resolve = isNamed ? lookup : allowedLookup();
  return new Promise((done, fail) => {
    resolve(
      host,
      { all: true },
      (error: NodeJS.ErrnoException | null, addresses?: string | LookupAddress[]) => {
        if (error !== null) fail(error);
        else done((addresses as LookupAddress[]).map(({ address }) => address));
      },
    );
  });
}
