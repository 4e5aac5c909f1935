import { writeFileSync } from 'node:fs';
import { connect } from 'node:tls';
import { generate } from 'selfsigned';
import type { TestServer } from './server.ts';

export interface CertificateFiles {
  certFile: string;
  keyFile: string;
}

/** A certificate of its own for localhost, and an address besides, as PEM; `name` is what it says who it is. */
export async function makeCertificate(
  name: string,
  address?: string,
): Promise<{ cert: string; key: string }> {
  const addresses = address === undefined ? [] : [{ type: 7, ip: address } as const];
  const notAfterDate = new Date(Date.now() + 86_400_000);
  const { cert, private: key } = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notAfterDate,
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }, ...addresses] }],
  });
  return { cert, key };
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
