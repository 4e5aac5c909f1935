import { type LookupAddress, type LookupAllOptions, type LookupOptions, lookup } from 'node:dns';
import { isLinkLocal } from '../declaration/forward-hosts.ts';

/**
 * The code of an error of the network, or of its cause; undefined where there is none. The code alone is shown: what is
 * written of such an error can have parts of a certificate or an answer in it.
 */
export function errorCode(error: unknown): string | undefined {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,63}$/.test(code)) return code;
  return cause === undefined || cause === null ? undefined : errorCode(cause);
}

/** Of a name that has addresses, none of which may be sent to. */
export const forbiddenAddressCode = 'ERR_FORBIDDEN_ADDRESS';
export const forbiddenAddressReason =
  'Forwarders may not send to the address that its host has: name the host in forwardHosts.';

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
 * In place of `dns.lookup` for a connection: only addresses that may be sent to. They are looked at here, when the
 * connection is made, for by then a name may have others than when it was looked at before.
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

/** The same as a list; of a host that is named, all that it has. @throws Error with a code. */
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
