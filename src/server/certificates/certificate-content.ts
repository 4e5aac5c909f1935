import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { dirname, join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { certificateHosts, type TlsFiles } from '../../core/config/tls.ts';
import { OperatorError } from '../../core/errors.ts';

/** Returns the host for a URL that clients can use: on all addresses, the first one of the certificate. */
export function hostToName(listenHost: string, certFile: string): string {
  if (listenHost !== '0.0.0.0' && listenHost !== '::') return listenHost;
  const hosts = certificateHosts(new X509Certificate(readFileSync(certFile)));
  return hosts.find((host) => !host.startsWith('*')) ?? listenHost;
}

/** True if a client that connects to this host accepts the certificate. */
export function isNamed(certFile: string, host: string): boolean {
  const certificate = new X509Certificate(readFileSync(certFile));
  const plain = host.replace(/^\[|\]$/g, '');
  return (isIP(plain) === 0 ? certificate.checkHost(plain) : certificate.checkIP(plain)) !== undefined;
}

let publicAuthorities: ReadonlySet<string> | undefined;

/** Returns the file that clients have to trust; undefined if the chain ends at an authority that they know. */
export function authorityFileOf(certFile: string): string | undefined {
  publicAuthorities ??= new Set(rootCertificates.map((pem) => new X509Certificate(pem).subject));
  const chain = readFileSync(certFile, 'utf8').match(
    /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g,
  );
  const last = chain?.at(-1);
  if (last !== undefined && publicAuthorities.has(new X509Certificate(last).issuer)) return undefined;
  // Where "fleetpost certificate create" puts its own.
  const authorityFile = join(dirname(certFile), 'ca.pem');
  return existsSync(authorityFile) ? authorityFile : certFile;
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
