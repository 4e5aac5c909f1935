import type { X509Certificate } from 'node:crypto';

/** Certificate chain and private key of a listener, PEM. */
export interface TlsFiles {
  certFile: string;
  keyFile: string;
}

/** TLS 1.2 suites: only those with forward secrecy and authenticated encryption. TLS 1.3 has its own. */
export const tlsCiphers: readonly string[] = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
];

/** The host names and addresses of a certificate, in its order. */
export function certificateHosts({ subjectAltName = '' }: X509Certificate): string[] {
  return [...subjectAltName.matchAll(/(?:DNS|IP Address):([^,\s]+)/g)].map(([, host = '']) => host);
}
