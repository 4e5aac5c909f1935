import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { certificateHosts, type TlsFiles } from '../../core/config/tls.ts';
import { OperatorError } from '../../core/errors.ts';

/** Returns the host for a URL that clients can use: on all addresses, the first one of the certificate. */
export function hostToName(listenHost: string, certFile: string): string {
  if (listenHost !== '0.0.0.0' && listenHost !== '::') return listenHost;
  const hosts = certificateHosts(new X509Certificate(readFileSync(certFile)));
  return hosts.find((host) => !host.startsWith('*')) ?? listenHost;
}

/** Returns when a certificate expires. */
export function certificateEndMs({ certFile }: Pick<TlsFiles, 'certFile'>): number {
  return Date.parse(new X509Certificate(readFileSync(certFile)).validTo);
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
