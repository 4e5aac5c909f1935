import type { NatsCredentials, NatsDestination } from '../declaration/forwarder.ts';
import { invalidForwarder } from '../declaration/invalid-forwarder.ts';
import type { DestinationKind } from './destination-kind.ts';
import { checkDestinationUrl, normalizedUrl } from './url.ts';

const serversMax = 10;
const subjectLengthMax = 255;

/** Variables of a subject: ids, kinds and schema names hold no character that is special to NATS. */
const subjectVariables = /\{(fleet_id|device_id|kind|schema)\}/g;

/** A message per record, to the first server of several that is reachable. */
export const natsKind: DestinationKind<NatsDestination> = {
  isSigned: false,
  ports: { 'nats:': 4222, 'tls:': 4222 },
  declared({ servers, subject, delivery, ...others }, known) {
    if (Object.values(others).some((member) => member !== undefined)) {
      throw invalidForwarder('A forwarder to NATS has servers and a subject, but no url.');
    }
    return {
      type: 'nats',
      servers: (servers ?? known?.servers ?? []).map(normalizedUrl),
      subject: subject ?? known?.subject ?? 'fleet.{fleet_id}.{kind}.{schema}',
      delivery: delivery ?? known?.delivery ?? 'jetstream',
    };
  },
  urlsOf: ({ servers }) => servers,
  check({ servers, subject }) {
    if (servers.length < 1 || servers.length > serversMax) {
      throw invalidForwarder(`A forwarder to NATS must have 1 to ${serversMax} servers.`);
    }
    for (const server of servers) checkDestinationUrl(server, this.ports, 'A server');
    checkSubject(subject);
  },
  checkSecrets({ headers, credentials }) {
    if (headers.length > 0) throw invalidForwarder('Headers are for webhooks: use credentials for NATS.');
    if (credentials !== undefined) checkCredentials(credentials);
  },
  async openSender(forwarder, destination, forwardHosts) {
    const { NatsSender } = await import('../senders/nats.ts');
    return new NatsSender(forwarder, destination, forwardHosts);
  },
};

function checkSubject(subject: string): void {
  const filled = subject.replace(subjectVariables, 'x');
  const isSubject = subject.length <= subjectLengthMax && /^[\w-]+(\.[\w-]+)*$/.test(filled);
  if (isSubject) return;
  throw invalidForwarder(
    `A subject must be words of letters, digits, _ and - separated by dots, in at most ${subjectLengthMax} characters; {fleet_id}, {device_id}, {kind} and {schema} are replaced by those of the record.`,
  );
}

function checkCredentials(credentials: NatsCredentials): void {
  const texts = Object.values(credentials);
  if (texts.every((text) => text !== '' && text.length <= 8_192)) return;
  throw invalidForwarder('Credentials must have 1 to 8192 characters.');
}
