import { webcrypto } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:tls';
import { PemConverter, SubjectAlternativeNameExtension, X509CertificateGenerator } from '@peculiar/x509';
import type { TestServer } from './server.ts';

export interface CertificateFiles {
  certFile: string;
  keyFile: string;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** A certificate of its own for localhost, and an address besides, as PEM; `name` is what it says who it is. */
export async function makeCertificate(
  name: string,
  address?: string,
): Promise<{ cert: string; key: string }> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const addresses = address === undefined ? [] : [{ type: 'ip', value: address } as const];
  // For any use: clients show theirs, too.
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [name] }],
    notAfter: new Date(Date.now() + 86_400_000),
    keys,
    signingAlgorithm: algorithm,
    extensions: [new SubjectAlternativeNameExtension([{ type: 'dns', value: 'localhost' }, ...addresses])],
  });
  const key = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { cert: certificate.toString('pem'), key: PemConverter.encode(key, 'PRIVATE KEY') };
}

export async function writeCertificate(name: string, { certFile, keyFile }: CertificateFiles): Promise<void> {
  const { cert, key } = await makeCertificate(name);
  writeFileSync(keyFile, key);
  writeFileSync(certFile, cert);
}

/** Whose certificate a new connection is shown. */
export function nameShown(server: TestServer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: server.port, rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.on('error', reject);
  });
}
