import { address, boolean, text } from '../../core/config/config-key.ts';

const label = '[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?';
/** Its last label begins with a letter, so that it is no address. */
const domain = `(?:${label}\\.)*[a-zA-Z](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?`;

/** Configuration of the device API's certificate: from files, or an ACME directory (RFC 8555). */
export const certificateKeys = {
  tlsCertFile: text(
    '',
    'Certificate chain, PEM. Empty: a self-signed one created in DATA/tls, for loopback only.',
    { isReloadable: true },
  ),
  tlsKeyFile: text('', 'Private key of the certificate, PEM. ECDSA P-256 is the fastest.', {
    isReloadable: true,
  }),
  acmeDomains: text(
    '',
    'Domain names, separated by commas, for a certificate from an ACME directory, obtained and renewed by this server. Each name must lead to this node on port 80: several nodes need names of their own, because a balancer would take the challenge of one to another. Empty: none.',
    {
      pattern: `^(?:${domain}(?: *, *${domain})*)?$`,
      patternText: 'domain names separated by commas, without wildcards and addresses',
    },
  ),
  acmeTermsAgreed: boolean(
    false,
    'Agreement to the terms of service of the ACME directory. Needed for `acmeDomains`.',
  ),
  acmeContact: text('', 'E-mail address that the ACME directory may write to. Empty: none.', {
    pattern: '^$|^(?:mailto:)?[^\\s@,;:?]+@[^\\s@,;:?]+$',
    patternText: 'an e-mail address',
  }),
  acmeDirectory: text(
    'https://acme-v02.api.letsencrypt.org/directory',
    "URL of the ACME directory: Let's Encrypt, or any other.",
    { pattern: '^https://[^\\s]+$', patternText: 'an https:// URL' },
  ),
  acmeDirectoryCaFile: text(
    '',
    "Authority that the ACME directory's own certificate must come from, PEM, for a private directory. Empty: those of Node.",
  ),
  acmeListen: address(
    '0.0.0.0:80',
    'Address for HTTP-01 challenges, plain HTTP, open only during an order. Change it where port 80 is forwarded to another.',
  ),
};
