import type { X509Certificate } from 'node:crypto';
import tls from 'node:tls';

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

/** Groups of key exchange that our listeners take part in. No client needs others, and some cost a hundred times as much. */
export const tlsGroups = 'X25519:prime256v1';

/**
 * Has what connects from this process, the forwarders above all, offer no key exchange that a receiver could choose to
 * keep the thread busy: that of ffdhe8192, or in TLS 1.2 of any prime that it sends, takes more than a tenth of a second.
 */
export function boundKeyExchange(): void {
  // Some receivers have P-384 alone.
  tls.DEFAULT_ECDH_CURVE = `${tlsGroups}:secp384r1`;
  tls.DEFAULT_CIPHERS += ':!DHE';
}

/** The host names and addresses of a certificate, in its order. */
export function certificateHosts({ subjectAltName = '' }: X509Certificate): string[] {
  return [...subjectAltName.matchAll(/(?:DNS|IP Address):([^,\s]+)/g)].map(([, host = '']) => host);
}
