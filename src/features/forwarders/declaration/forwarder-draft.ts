import { ApiError } from '../../../core/errors.ts';
import { schemaNamePattern } from '../../../core/identity.ts';
import { isHostAllowed } from './forward-hosts.ts';
import type {
  Destination,
  ForwarderFilter,
  ForwarderSecrets,
  ForwarderSettings,
  ForwarderTls,
  NatsCredentials,
} from './forwarder.ts';
import { signingKey } from './signing-secret.ts';

const schemasMax = 100;
const headersMax = 20;
const headerBytesMax = 4_096;
const serversMax = 10;
const addressLengthMax = 2_048;
const subjectLengthMax = 255;

/** Headers that the server sets itself, or that would change how the request is parsed. */
const ownHeaders =
  /^(host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|content-.*|webhook-.*)$/;

/** Variables of a subject: ids, kinds and schema names hold no character that is special to NATS. */
const subjectVariables = /\{(fleet_id|device_id|kind|schema)\}/g;

/** @throws ApiError invalid_forwarder with the reason. */
export function checkForwarder(
  { destination, filter }: ForwarderSettings,
  secrets: ForwarderSecrets,
  forwardHosts: string,
): void {
  checkDestination(destination, forwardHosts);
  checkFilter(filter);
  if (destination.type === 'webhook') {
    if (secrets.credentials !== undefined)
      throw invalid('Credentials are for NATS: use headers for a webhook.');
    checkHeaders(secrets.headers);
    for (const { secret } of secrets.signing) checkSigningSecret(secret);
  } else {
    if (secrets.headers.length > 0) throw invalid('Headers are for webhooks: use credentials for NATS.');
    if (secrets.credentials !== undefined) checkCredentials(secrets.credentials);
  }
  checkTls(secrets.tls);
}

/** @throws ApiError invalid_forwarder. */
export function checkSigningSecret(secret: string): void {
  const bytes = signingKey(secret)?.length ?? 0;
  if (bytes >= 24 && bytes <= 64) return;
  throw invalid('A signing secret must be whsec_ and 24 to 64 bytes in base64.');
}

/** All hosts of a destination. */
export function hostsOf(destination: Destination): string[] {
  const urls = destination.type === 'webhook' ? [destination.url] : destination.servers;
  return urls.map(hostOf);
}

/** The host in its canonical form, which URL produces for web protocols only. */
function hostOf(url: string): string {
  const { protocol, host, hostname } = new URL(url);
  if (protocol === 'https:' || protocol === 'http:') return hostname;
  return URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : hostname;
}

/** Normalizes the URLs, which removes line ends for example. Leaves invalid ones as they are. */
export function parsedDestination(destination: Destination): Destination {
  if (destination.type === 'webhook') return { ...destination, url: parsed(destination.url) };
  return { ...destination, servers: destination.servers.map(parsed) };
}

function parsed(url: string): string {
  return URL.canParse(url) ? new URL(url).href : url;
}

function checkDestination(destination: Destination, forwardHosts: string): void {
  if (destination.type === 'webhook') checkUrl(destination.url, ['https:', 'http:'], 'The url');
  else {
    const { servers } = destination;
    if (servers.length < 1 || servers.length > serversMax) {
      throw invalid(`A forwarder to NATS must have 1 to ${serversMax} servers.`);
    }
    for (const server of servers) checkUrl(server, ['nats:', 'tls:'], 'A server');
    checkSubject(destination.subject);
  }
  if (hostsOf(destination).some((host) => !isHostAllowed(host, forwardHosts))) {
    throw invalid('Forwarders may not send to this host: add it to forwardHosts.');
  }
}

/** Refuses users and passwords, since listings show the URL. */
function checkUrl(text: string, protocols: readonly string[], what: string): void {
  const allowed = protocols.map((protocol) => `${protocol}//`).join(' or ');
  const url = text.length <= addressLengthMax && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !protocols.includes(url.protocol) || url.hostname === '') {
    throw invalid(
      `${what} must begin with ${allowed} and a host, in at most ${addressLengthMax} characters.`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw invalid(`${what} must not contain a user: use headers or credentials.`);
  }
  if (url.hash !== '') throw invalid(`${what} must not contain a fragment.`);
}

function checkSubject(subject: string): void {
  const filled = subject.replace(subjectVariables, 'x');
  const isSubject = subject.length <= subjectLengthMax && /^[\w-]+(\.[\w-]+)*$/.test(filled);
  if (isSubject) return;
  throw invalid(
    `A subject must be words of letters, digits, _ and - separated by dots, in at most ${subjectLengthMax} characters; {fleet_id}, {device_id}, {kind} and {schema} are replaced by those of the record.`,
  );
}

/** Refuses empty lists, which would never forward anything. */
function checkFilter({ kinds, schemas }: ForwarderFilter): void {
  if (kinds?.length === 0) throw invalid('A filter of kinds must name at least one.');
  if (schemas === undefined) return;
  if (schemas.length < 1 || schemas.length > schemasMax) {
    throw invalid(`A filter of schemas must name 1 to ${schemasMax} of them.`);
  }
  if (!schemas.every((schema) => schemaNamePattern.test(schema))) {
    throw invalid('A schema name in the filter must be 1 to 255 letters, digits, _ and -.');
  }
}

function checkHeaders(headers: ForwarderSecrets['headers']): void {
  if (headers.length > headersMax) throw invalid(`A webhook may have at most ${headersMax} headers.`);
  for (const [name, value] of headers) {
    if (!/^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$/.test(name) || ownHeaders.test(name)) {
      throw invalid('A header name is invalid or reserved.');
    }
    if (value.length > headerBytesMax || !/^[\x20-\x7e]*$/.test(value)) {
      throw invalid(`A header value must be at most ${headerBytesMax} printable ASCII characters.`);
    }
  }
}

function checkCredentials(credentials: NatsCredentials): void {
  const texts = Object.values(credentials);
  if (texts.every((text) => text !== '' && text.length <= 8_192)) return;
  throw invalid('Credentials must have 1 to 8192 characters.');
}

function checkTls({ ca, cert, key }: ForwarderTls): void {
  for (const text of [ca, cert, key]) {
    if (text !== undefined && !text.includes('-----BEGIN ')) throw invalid('TLS files must be PEM.');
  }
  if ((cert === undefined) !== (key === undefined)) {
    throw invalid('A client certificate and its key must be given together.');
  }
}

function invalid(msg: string): ApiError {
  return new ApiError('invalid_forwarder', { msg });
}
