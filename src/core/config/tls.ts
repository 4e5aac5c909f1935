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
