import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorError } from '../../core/errors.ts';
import { isLoopback, parseHostPort } from '../../core/host-port.ts';
import type { TlsFiles } from '../../device-api/uws/uws.ts';
import type { Config } from '../configuration/config.ts';

const selfSignedYears = 10;

/**
 * Returns the certificate files: the configured ones, or self-signed ones in the data folder.
 * @throws OperatorError when only one is configured, or none although other machines could reach the server.
 */
export function certificateFiles(config: Config, tlsFolder: string): TlsFiles {
  const { tlsCertFile: certFile, tlsKeyFile: keyFile } = config;
  if ((certFile === '') !== (keyFile === '')) {
    throw new OperatorError(
      'Configuration: only one of tlsCertFile and tlsKeyFile is set. Set both or neither.',
    );
  }
  if (certFile !== '') return { certFile, keyFile };
  const { host } = parseHostPort(config.listen);
  if (!isLoopback(host)) {
    throw new OperatorError(
      `Listening on ${host} needs a certificate that devices can trust: set tlsCertFile and tlsKeyFile, or listen on 127.0.0.1.`,
    );
  }
  return { certFile: join(tlsFolder, 'cert.pem'), keyFile: join(tlsFolder, 'key.pem') };
}

/** Returns the files of `certificateFiles`, creating self-signed ones if absent. @throws OperatorError */
export async function findCertificate(config: Config, tlsFolder: string): Promise<TlsFiles> {
  const files = certificateFiles(config, tlsFolder);
  const isOwn = config.tlsCertFile === '';
  if (isOwn && !(existsSync(files.certFile) && existsSync(files.keyFile))) {
    await createSelfSigned(tlsFolder, files);
  }
  return checkCertificate(files);
}

async function createSelfSigned(folder: string, { certFile, keyFile }: TlsFiles): Promise<void> {
  const notAfterDate = new Date();
  notAfterDate.setFullYear(notAfterDate.getFullYear() + selfSignedYears);
  // Imported here: it takes longer to load than everything else a start needs.
  const { generate } = await import('selfsigned');
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notAfterDate,
    extensions: [
      // Not an authority: trusting it must not imply trust in any other certificate.
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: 'localhost' },
          { type: 7, ip: '127.0.0.1' },
        ],
      },
    ],
  });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(keyFile, key, { mode: 0o600 });
  writeFileSync(certFile, cert, { mode: 0o644 });
}

/**
 * Checks each file first, to name it in the error: the TLS library says only that construction failed.
 * @throws OperatorError when they cannot be used.
 */
export function checkCertificate(files: TlsFiles): TlsFiles {
  const certificate = read('certificate', files.certFile, (pem) => new X509Certificate(pem));
  const key = read('private key', files.keyFile, (pem) => createPrivateKey(pem));
  if (!certificate.checkPrivateKey(key)) {
    throw new OperatorError(
      `The private key ${files.keyFile} does not belong to the certificate ${files.certFile}.`,
    );
  }
  if (Date.parse(certificate.validTo) < Date.now()) {
    throw new OperatorError(`The certificate ${files.certFile} expired on ${certificate.validTo}.`);
  }
  return files;
}

function read<T>(what: string, file: string, parse: (pem: Buffer) => T): T {
  try {
    return parse(readFileSync(file));
  } catch (error) {
    throw new OperatorError(`The ${what} ${file} cannot be used: ${(error as Error).message}`);
  }
}
