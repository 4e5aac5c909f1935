import { kindOf, urlsOf } from '../destinations/destinations.ts';
import type { Destination, Forwarder, ForwarderSecrets, ForwarderTls, NatsCredentials } from './forwarder.ts';
import { invalidForwarder } from './invalid-forwarder.ts';

/** Secrets in a request; absent ones stay as they are. */
export interface SecretsInput {
  signing?: string;
  headers?: ForwarderSecrets['headers'];
  /** Null removes them. */
  credentials?: NatsCredentials | null;
  tls?: ForwarderTls;
}

/**
 * Merges the secrets of a request with those of the forwarder it replaces. Headers, credentials and keys given for one
 * destination are never sent to another.
 * @throws ApiError invalid_forwarder if they would be.
 */
export function mergedSecrets(
  destination: Destination,
  { signing, ...others }: SecretsInput,
  known: Forwarder | undefined,
): ForwarderSecrets {
  const before = known?.secrets;
  const isSame = known !== undefined && originsOf(known.destination) === originsOf(destination);
  if (before !== undefined && !isSame) {
    const missing = [
      before.headers.length > 0 && others.headers === undefined ? 'headers' : undefined,
      before.credentials !== undefined && others.credentials === undefined ? 'credentials' : undefined,
      before.tls.key !== undefined && others.tls === undefined ? 'tls' : undefined,
    ].filter((name) => name !== undefined);
    if (missing.length > 0) {
      throw invalidForwarder(
        `The destination has changed: give its ${missing.join(' and ')} too, or null for none.`,
      );
    }
  }
  const retained = isSame ? before : undefined;
  const credentials =
    others.credentials === undefined ? retained?.credentials : (others.credentials ?? undefined);
  const [current] = before?.signing ?? [];
  // Declared again, it is no newer.
  const isKnown = signing === undefined || signing === current?.secret;
  const present = isKnown ? before?.signing : [{ secret: signing, sinceMs: Date.now() }];
  return {
    signing: kindOf(destination).isSigned ? (present ?? []) : [],
    headers: others.headers ?? retained?.headers ?? [],
    ...(credentials !== undefined && { credentials }),
    tls: others.tls ?? retained?.tls ?? {},
  };
}

function originsOf(destination: Destination): string {
  return urlsOf(destination)
    .map((text) => new URL(text))
    .map(({ protocol, host }) => `${protocol}//${host}`)
    .sort()
    .join(' ');
}
