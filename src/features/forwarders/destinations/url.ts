import { invalidForwarder } from '../declaration/invalid-forwarder.ts';

const lengthMax = 2_048;

/** Normalizes a URL, which removes line ends for example. Leaves an invalid one as it is. */
export function normalizedUrl(url: string): string {
  return URL.canParse(url) ? new URL(url).href : url;
}

/**
 * Refuses users and passwords, since listings show the URL. `what` begins the sentence.
 * @throws ApiError invalid_forwarder.
 */
export function checkDestinationUrl(
  text: string,
  ports: Readonly<Record<string, number>>,
  what: string,
): void {
  const protocols = Object.keys(ports);
  const allowed = protocols.map((protocol) => `${protocol}//`).join(' or ');
  const url = text.length <= lengthMax && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !protocols.includes(url.protocol) || url.hostname === '') {
    throw invalidForwarder(
      `${what} must begin with ${allowed} and a host, in at most ${lengthMax} characters.`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw invalidForwarder(`${what} must not contain a user: use headers or credentials.`);
  }
  if (url.hash !== '') throw invalidForwarder(`${what} must not contain a fragment.`);
}
