import type { Destination } from '../declaration/forwarder.ts';
import type { DestinationKind } from './destination-kind.ts';
import { natsKind } from './nats.ts';
import { webhookKind } from './webhook.ts';

type DestinationType = Destination['type'];

/** Every kind of destination. */
const kinds = {
  webhook: webhookKind,
  nats: natsKind,
} satisfies { [T in DestinationType]: DestinationKind<Extract<Destination, { type: T }>> };

export function isDestinationType(type: unknown): type is DestinationType {
  return typeof type === 'string' && Object.hasOwn(kinds, type);
}

/** The kind of a destination; give it only destinations of that type. */
export function kindOf({ type }: { type: DestinationType }): DestinationKind<Destination> {
  return kinds[type];
}

/** The URLs of a destination, all of which lead to the same receiver. */
export function urlsOf(destination: Destination): readonly string[] {
  return kindOf(destination).urlsOf(destination);
}

/** All hosts of a destination. */
export function hostsOf(destination: Destination): string[] {
  return urlsOf(destination).map(hostOf);
}

/** The host in its canonical form, which URL produces for web protocols only. */
function hostOf(url: string): string {
  const { protocol, host, hostname } = new URL(url);
  if (protocol === 'https:' || protocol === 'http:') return hostname;
  return URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : hostname;
}
