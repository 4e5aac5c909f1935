import type { ForwarderDocument } from './forwarder.ts';

type Destination = Pick<ForwarderDocument, 'type' | 'url' | 'servers' | 'subject'>;

/** A member that says where a kind of destination is, as a form asks for it. */
export interface DestinationField {
  member: 'url' | 'servers' | 'subject';
  label: string;
  placeholder: string;
  hint?: string;
  /** Set for a URL: those that it may begin with. */
  protocols?: readonly string[];
}

/** Words that commands and console show for a kind of destination. */
interface DestinationWords {
  /** In the middle of a sentence. */
  noun: string;
  title: string;
  fields: readonly DestinationField[];
  /** Which member has the secrets that its requests are allowed by. */
  secrets: 'headers' | 'credentials';
  /** Set if what is sent is signed, with a secret that is shown once. */
  isSigned: boolean;
  addresses(destination: Destination): readonly string[];
  /** Says where it sends to, in one line. */
  line(destination: Destination): string;
}

const words: Record<Destination['type'], DestinationWords> = {
  webhook: {
    noun: 'a webhook',
    title: 'Webhook',
    fields: [
      {
        member: 'url',
        label: 'URL',
        placeholder: 'https://warehouse.example/records',
        hint: 'Seen by all who may read: secrets belong into headers',
        protocols: ['https:', 'http:'],
      },
    ],
    secrets: 'headers',
    isSigned: true,
    addresses: ({ url = '' }) => [url],
    line: ({ url = '' }) => url,
  },
  nats: {
    noun: 'NATS',
    title: 'NATS',
    fields: [
      {
        member: 'servers',
        label: 'Servers',
        placeholder: 'tls://nats.example:4222',
        hint: 'One or several, separated by commas',
        protocols: ['tls:', 'nats:'],
      },
      {
        member: 'subject',
        label: 'Subject',
        placeholder: 'fleet.{fleet_id}.{kind}.{schema}',
        hint: 'With {fleet_id}, {device_id}, {kind} and {schema} of the record; empty: as shown',
      },
    ],
    secrets: 'credentials',
    isSigned: false,
    addresses: ({ servers = [] }) => servers,
    line: ({ subject = '', servers = [] }) => `${subject} at ${servers.join(', ')}`,
  },
};

/** All kinds of destinations, in words: "a webhook or NATS". */
export const anyDestination = new Intl.ListFormat('en', { type: 'disjunction' }).format(
  Object.values(words).map(({ noun }) => noun),
);

export const destinationTypes = Object.keys(words) as readonly Destination['type'][];

/** How a form asks for a kind of destination. */
export function destinationForm(
  type: Destination['type'],
): Pick<DestinationWords, 'title' | 'fields' | 'secrets' | 'isSigned'> {
  return words[type];
}

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
