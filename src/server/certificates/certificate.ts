import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorError } from '../../core/errors.ts';
import { isLoopback, parseHostPort } from '../../core/host-port.ts';
import type { TlsFiles } from '../../device-api/uws/uws.ts';
import type { Config } from '../configuration/config.ts';

const selfSignedYears = 10;

/**
 * Where the certificate to serve with is: the configured one, or a self-signed one kept in the data folder.
 * @throws OperatorError when only half of it is configured, or none though others than this machine could
 * reach the server.
 */
export function certificateFiles(config: Config, tlsFolder: string): TlsFiles {
  const { tlsCertFile: certFile, tlsKeyFile: keyFile } = config;
  if ((certFile === '') !== (keyFile === '')) {
    throw new OperatorError(
      'Configuration: tlsCertFile and tlsKeyFile go together; only one of them is set.',
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

/** The files of `certificateFiles`, the self-signed ones made if they are not there. @throws OperatorError */
export async function findCertificate(config: Config, tlsFolder: string): Promise<TlsFiles> {
  const files = certificateFiles(config, tlsFolder);
  const isOwn = config.tlsCertFile === '';
  if (isOwn && !(existsSync(files.certFile) && existsSync(files.keyFile))) {
    await makeSelfSigned(tlsFolder, files);
  }
  return checkCertificate(files);
}

async function makeSelfSigned(folder: string, { certFile, keyFile }: TlsFiles): Promise<void> {
  const notAfterDate = new Date();
  notAfterDate.setFullYear(notAfterDate.getFullYear() + selfSignedYears);
  // Loaded here: it takes longer to load than all else that a start needs.
  const { generate } = await import('selfsigned');
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notAfterDate,
    extensions: [
      // Of the server and no authority: who trusts it trusts no other certificate by it.
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
 * The TLS library says only that construction failed: so each file is looked at first, and named.
 * @throws OperatorError when they cannot be served with.
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
