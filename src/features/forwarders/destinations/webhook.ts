import type { ForwarderSecrets, WebhookDestination } from '../declaration/forwarder.ts';
import { invalidForwarder } from '../declaration/invalid-forwarder.ts';
import { checkSigningSecret } from '../declaration/signing-secret.ts';
import type { DestinationKind } from './destination-kind.ts';
import { checkDestinationUrl, normalizedUrl } from './url.ts';

const headersMax = 20;
const headerBytesMax = 4_096;

/** Headers that the server sets itself, or that would change how the request is parsed. */
const ownHeaders =
  /^(host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|content-.*|webhook-.*)$/;

/** Every batch in a POST of its own. */
export const webhookKind: DestinationKind<WebhookDestination> = {
  isSigned: true,
  ports: { 'https:': 443, 'http:': 80 },
  declared({ url, ...others }, known) {
    if (Object.values(others).some((member) => member !== undefined)) {
      throw invalidForwarder('A webhook has a url, but no servers, subject or delivery.');
    }
    return { type: 'webhook', url: normalizedUrl(url ?? known?.url ?? '') };
  },
  urlsOf: ({ url }) => [url],
  check({ url }) {
    checkDestinationUrl(url, this.ports, 'The url');
  },
  checkSecrets({ headers, credentials, signing }) {
    if (credentials !== undefined) {
      throw invalidForwarder('Credentials are for NATS: use headers for a webhook.');
    }
    checkHeaders(headers);
    for (const { secret } of signing) checkSigningSecret(secret);
  },
  async openSender(forwarder, destination, forwardHosts) {
    const { WebhookSender } = await import('../senders/webhook.ts');
    return new WebhookSender(forwarder, destination, forwardHosts);
  },
};

function checkHeaders(headers: ForwarderSecrets['headers']): void {
  if (headers.length > headersMax) {
    throw invalidForwarder(`A webhook may have at most ${headersMax} headers.`);
  }
  for (const [name, value] of headers) {
    if (!/^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$/.test(name) || ownHeaders.test(name)) {
      throw invalidForwarder('A header name is invalid or reserved.');
    }
    if (value.length > headerBytesMax || !/^[\x20-\x7e]*$/.test(value)) {
      throw invalidForwarder(`A header value must be at most ${headerBytesMax} printable ASCII characters.`);
    }
  }
}
