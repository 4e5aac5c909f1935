import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isLoopback, parseHostPort } from '../../core/address.ts';
import type { TlsFiles } from '../../core/config/tls.ts';
import { OperatorError } from '../../core/errors.ts';
import type { RunningConfig } from '../configuration/config.ts';

const selfSignedDays = 3_650;

/**
 * Returns the certificate files: the configured ones, or self-signed ones in the data folder.
 * @throws OperatorError when only one is configured, or none although other machines could reach the server.
 */
export function certificateFiles(config: RunningConfig, tlsFolder: string): TlsFiles {
  const configured = configuredFiles(config);
  if (configured !== undefined) return configured;
  const { host } = parseHostPort(config.listen);
  if (!isLoopback(host)) {
    throw new OperatorError(
      `Listening on ${host} needs a certificate that devices can trust: create one with "fleetpost certificate create", set tlsCertFile and tlsKeyFile, or listen on 127.0.0.1.`,
    );
  }
  return { certFile: join(tlsFolder, 'cert.pem'), keyFile: join(tlsFolder, 'key.pem') };
}

/** Returns the certificate files of the configuration. @throws OperatorError when only one is set. */
function configuredFiles(config: RunningConfig): TlsFiles | undefined {
  const { tlsCertFile: certFile, tlsKeyFile: keyFile } = config.settings.current;
  checkPair('tlsCertFile', certFile, 'tlsKeyFile', keyFile);
  return certFile === '' ? undefined : { certFile, keyFile };
}

function checkPair(certKey: string, certFile: string, keyKey: string, keyFile: string): void {
  if ((certFile === '') === (keyFile === '')) return;
  throw new OperatorError(`Configuration: only one of ${certKey} and ${keyKey} is set. Set both or neither.`);
}

/**
 * Returns the certificate files of the admin API (D26): its own, or elsewhere than on loopback those configured for the
 * device API; undefined for plain HTTP.
 * @throws OperatorError when plain HTTP could be reached by other machines.
 */
export function adminCertificateFiles(config: RunningConfig): TlsFiles | undefined {
  const { adminTlsCertFile: certFile, adminTlsKeyFile: keyFile } = config;
  checkPair('adminTlsCertFile', certFile, 'adminTlsKeyFile', keyFile);
  if (certFile !== '') return { certFile, keyFile };
  const { host } = parseHostPort(config.admin);
  if (isLoopback(host)) return undefined;
  const configured = configuredFiles(config);
  if (configured !== undefined) return configured;
  throw new OperatorError(
    `The admin API speaks plain HTTP and cannot listen on ${host} without a certificate: set adminTlsCertFile and adminTlsKeyFile, or keep it on 127.0.0.1. Health and metrics alone can be served elsewhere in plain HTTP (probe).`,
  );
}

/** Returns the files of `certificateFiles`, creating self-signed ones if absent. @throws OperatorError */
export async function findCertificate(config: RunningConfig, tlsFolder: string): Promise<TlsFiles> {
  const files = certificateFiles(config, tlsFolder);
  const isOwn = config.settings.current.tlsCertFile === '';
  if (isOwn && !(existsSync(files.certFile) && existsSync(files.keyFile))) {
    await writeSelfSigned(tlsFolder, files);
  }
  return checkCertificate(files);
}

async function writeSelfSigned(folder: string, { certFile, keyFile }: TlsFiles): Promise<void> {
  // Imported here: it takes longer to load than everything else a start needs.
  const { createSelfSigned } = await import('./authority.ts');
  const { certificate, key } = await createSelfSigned({
    hosts: ['localhost', '127.0.0.1'],
    days: selfSignedDays,
  });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(keyFile, key, { mode: 0o600 });
  writeFileSync(certFile, certificate, { mode: 0o644 });
}

/** The host names and addresses of a certificate, in its order. */
export function certificateHosts({ subjectAltName = '' }: X509Certificate): string[] {
  return [...subjectAltName.matchAll(/(?:DNS|IP Address):([^,\s]+)/g)].map(([, host = '']) => host);
}

/** Returns the host for a URL that clients can use: on all addresses, the first one of the certificate. */
export function hostToName(listenHost: string, certFile: string): string {
  if (listenHost !== '0.0.0.0' && listenHost !== '::') return listenHost;
  const hosts = certificateHosts(new X509Certificate(readFileSync(certFile)));
  return hosts.find((host) => !host.startsWith('*')) ?? listenHost;
}

/** Returns the host for the URL of the admin API. */
export function adminHost(config: RunningConfig): string {
  const { host } = parseHostPort(config.admin);
  const files = adminCertificateFiles(config);
  return files === undefined ? host : hostToName(host, files.certFile);
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
