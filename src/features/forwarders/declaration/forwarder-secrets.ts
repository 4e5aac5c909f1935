import { ApiError } from '../../../core/errors.ts';
import type { Destination, Forwarder, ForwarderSecrets, ForwarderTls, NatsCredentials } from './forwarder.ts';

/** What an operator gives of them; what is absent stays. */
export interface SecretsInput {
  signing?: string;
  headers?: ForwarderSecrets['headers'];
  /** Null: none. */
  credentials?: NatsCredentials | null;
  tls?: ForwarderTls;
}

/**
 * The secrets of a forwarder that is put: those that are given, and of the others what the one before it had. Headers,
 * credentials and keys that were given for one destination never go to another by themselves.
 * @throws ApiError invalid_forwarder where they would.
 */
export function mergedSecrets(
  destination: Destination,
  { signing, ...others }: SecretsInput,
  known: Forwarder | undefined,
): ForwarderSecrets {
  const before = known?.secrets;
  const isSame = known !== undefined && originsOf(known.destination) === originsOf(destination);
  if (before !== undefined && !isSame) {
    const forgotten = [
      before.headers.length > 0 && others.headers === undefined ? 'headers' : undefined,
      before.credentials !== undefined && others.credentials === undefined ? 'credentials' : undefined,
      before.tls.key !== undefined && others.tls === undefined ? 'tls' : undefined,
    ].filter((name) => name !== undefined);
    if (forgotten.length > 0) {
      throw new ApiError('invalid_forwarder', {
        msg: `The destination is another one: give its ${forgotten.join(' and ')} too, or null for none.`,
      });
    }
  }
  const kept = isSame ? before : undefined;
  const credentials =
    others.credentials === undefined ? kept?.credentials : (others.credentials ?? undefined);
  const isWebhook = destination.type === 'webhook';
  const present = signing === undefined ? before?.signing : [{ secret: signing }];
  return {
    signing: isWebhook ? (present ?? []) : [],
    headers: others.headers ?? kept?.headers ?? [],
    ...(credentials !== undefined && { credentials }),
    tls: others.tls ?? kept?.tls ?? {},
  };
}

function originsOf(destination: Destination): string {
  const urls = destination.type === 'webhook' ? [destination.url] : destination.servers;
  return urls
    .map((text) => new URL(text))
    .map(({ protocol, host }) => `${protocol}//${host}`)
    .sort()
    .join(' ');
}
