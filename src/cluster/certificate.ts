import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, isLoopback, parseHostPort } from '../core/config.ts';
import { OperatorError } from '../core/errors.ts';
import type { TlsFiles } from '../http/uws.ts';

const selfSignedYears = 10;

/**
 * The certificate to serve with: the configured one, or a self-signed one kept in the data folder.
 * @throws OperatorError when the files do not fit, or when others than this machine could reach the server
 * and no certificate is configured.
 */
export async function findCertificate(config: Config, tlsFolder: string): Promise<TlsFiles> {
  const { tlsCertFile: certFile, tlsKeyFile: keyFile } = config;
  if ((certFile === '') !== (keyFile === '')) {
    throw new OperatorError(
      'Configuration: tlsCertFile and tlsKeyFile go together; only one of them is set.',
    );
  }
  if (certFile !== '') return check({ certFile, keyFile });
  const { host } = parseHostPort(config.listen);
  if (!isLoopback(host)) {
    throw new OperatorError(
      `Listening on ${host} needs a certificate that devices can trust: set tlsCertFile and tlsKeyFile, or listen on 127.0.0.1.`,
    );
  }
  const files = { certFile: join(tlsFolder, 'cert.pem'), keyFile: join(tlsFolder, 'key.pem') };
  if (!existsSync(files.certFile) || !existsSync(files.keyFile)) await makeSelfSigned(tlsFolder, files);
  return check(files);
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
      { name: 'basicConstraints', cA: true },
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

/** The TLS library says only that construction failed: so each file is looked at first, and named. */
function check(files: TlsFiles): TlsFiles {
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
