import { type LookupAddress, type LookupAllOptions, type LookupOptions, lookup } from 'node:dns';
import { KeyedMutex } from '../../../core/async.ts';
import { isMetadataAddress } from '../declaration/forward-hosts.ts';

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

/** Lookups of each fleet that are under way or wait, by host: whoever asks for the same shares one. */
const pending = new Map<string, Promise<LookupAddress[]>>();
const turns = new KeyedMutex<string>();

/**
 * Looks hosts up for one fleet, one at a time. The system's resolver has two threads of the process, and a name whose
 * server does not answer holds one for many seconds: ten such forwarders of one fleet held up those of all.
 */
export function lookupOf(fleetId: string, resolve: ResolveAll = lookup): ResolveAll {
  return (host, options, done) => {
    const key = `${fleetId} ${options.family ?? 0} ${host}`;
    const found =
      pending.get(key) ??
      turns
        .run(fleetId, () => promised(resolve, host, options))
        .finally(() => {
          pending.delete(key);
        });
    pending.set(key, found);
    found.then(
      (addresses) => done(null, addresses),
      (error: NodeJS.ErrnoException) => done(error, []),
    );
  };
}

function promised(resolve: ResolveAll, host: string, options: LookupAllOptions): Promise<LookupAddress[]> {
  return new Promise((done, fail) => {
    resolve(host, options, (error, addresses) => (error === null ? done(addresses) : fail(error)));
  });
}

/**
 * Replaces `dns.lookup` for a connection and returns allowed addresses only: all of a host that is named in
 * forwardHosts. Checks them when connecting, since a name may resolve differently than in any earlier check.
 */
export function allowedLookup(resolve: ResolveAll, isNamed: boolean) {
  return (host: string, options: LookupOptions, done: Done): void => {
    resolve(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return done(error);
      const allowed = addresses.filter(({ address }) => isNamed || !isMetadataAddress(address));
      const [first] = allowed;
      if (first === undefined) return done(Object.assign(new Error(), { code: forbiddenAddressCode }));
      if (options.all) done(null, allowed);
      else done(null, first.address, first.family);
    });
  };
}

/** Resolves a host of a fleet to its allowed addresses. @throws Error with a code. */
export function addressesOf(fleetId: string, host: string, isNamed: boolean): Promise<string[]> {
  return new Promise((done, fail) => {
    allowedLookup(lookupOf(fleetId), isNamed)(host, { all: true }, (error, addresses) => {
      if (error !== null) fail(error);
      else done((addresses as LookupAddress[]).map(({ address }) => address));
    });
  });
}
