import type { ForwarderDocument } from './forwarder.ts';

type Destination = Pick<ForwarderDocument, 'type' | 'url' | 'servers' | 'subject'>;

/** Words that commands and console show for a kind of destination. */
interface DestinationWords {
  /** In the middle of a sentence. */
  noun: string;
  title: string;
  addresses(destination: Destination): readonly string[];
  /** Says where it sends to, in one line. */
  line(destination: Destination): string;
}

const words: Record<Destination['type'], DestinationWords> = {
  webhook: {
    noun: 'a webhook',
    title: 'Webhook',
    addresses: ({ url = '' }) => [url],
    line: ({ url = '' }) => url,
  },
  nats: {
    noun: 'NATS',
    title: 'NATS',
    addresses: ({ servers = [] }) => servers,
    line: ({ subject = '', servers = [] }) => `${subject} at ${servers.join(', ')}`,
  },
};

/** All kinds of destinations, in words: "a webhook or NATS". */
export const anyDestination = new Intl.ListFormat('en', { type: 'disjunction' }).format(
  Object.values(words).map(({ noun }) => noun),
);

export function destinationTitle({ type }: Destination): string {
  return words[type].title;
}

export function destinationAddresses(destination: Destination): readonly string[] {
  return words[destination.type].addresses(destination);
}

/** Says where a forwarder sends to, in one line. */
export function destinationText(destination: Destination): string {
  return words[destination.type].line(destination);
}
