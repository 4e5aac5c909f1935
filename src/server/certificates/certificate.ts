import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isLoopback, parseHostPort } from '../../core/address.ts';
import type { TlsFiles } from '../../core/config/tls.ts';
import { OperatorError } from '../../core/errors.ts';
import type { RunningConfig } from '../configuration/config.ts';
import { AcmeFiles } from './acme-files.ts';
import { acmeTerms } from './acme-terms.ts';
import { checkCertificate, hostToName } from './certificate-content.ts';

const selfSignedDays = 3_650;

/**
 * Returns the certificate files: the configured ones, those from the ACME directory, or self-signed ones in the data
 * folder.
 * @throws OperatorError for a configuration that contradicts itself, or has none although other machines could reach the
 * server.
 */
export function certificateFiles(config: RunningConfig, tlsFolder: string): TlsFiles {
  const configured = configuredFiles(config, tlsFolder);
  if (configured !== undefined) return configured;
  const { host } = parseHostPort(config.listen);
  if (!isLoopback(host)) {
    throw new OperatorError(
      `Listening on ${host} needs a certificate that devices can trust: create one with "fleetpost certificate create", set tlsCertFile and tlsKeyFile, or acmeDomains, or listen on 127.0.0.1.`,
    );
  }
  return { certFile: join(tlsFolder, 'cert.pem'), keyFile: join(tlsFolder, 'key.pem') };
}

/** Returns the files that the configuration asks for. @throws OperatorError when it contradicts itself. */
function configuredFiles(config: RunningConfig, tlsFolder: string): TlsFiles | undefined {
  const terms = acmeTerms(config);
  if (terms !== undefined) return new AcmeFiles(terms, tlsFolder).tls;
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
export function adminCertificateFiles(config: RunningConfig, tlsFolder: string): TlsFiles | undefined {
  const { adminTlsCertFile: certFile, adminTlsKeyFile: keyFile } = config;
  checkPair('adminTlsCertFile', certFile, 'adminTlsKeyFile', keyFile);
  if (certFile !== '') return { certFile, keyFile };
  const { host } = parseHostPort(config.admin);
  if (isLoopback(host)) return undefined;
  const configured = configuredFiles(config, tlsFolder);
  if (configured !== undefined) return configured;
  throw new OperatorError(
    `The admin API speaks plain HTTP and cannot listen on ${host} without a certificate: set adminTlsCertFile and adminTlsKeyFile, or keep it on 127.0.0.1. Health and metrics alone can be served elsewhere in plain HTTP (probe).`,
  );
}

/** Returns the files of `certificateFiles`, creating the server's own if absent. @throws OperatorError */
export async function findCertificate(config: RunningConfig, tlsFolder: string): Promise<TlsFiles> {
  const terms = acmeTerms(config);
  const files = certificateFiles(config, tlsFolder);
  if (terms !== undefined) await new AcmeFiles(terms, tlsFolder).makeUsable(terms.domains);
  else if (
    config.settings.current.tlsCertFile === '' &&
    !(existsSync(files.certFile) && existsSync(files.keyFile))
  ) {
    await writeSelfSigned(tlsFolder, files);
  }
  return checkCertificate(files);
}

/**
 * Checks files that an operator makes. Those from the ACME directory are the server's own to renew: an expired one must
 * not keep it from starting or reloading.
 * @throws OperatorError when they cannot be used.
 */
export function checkConfigured(config: RunningConfig, files: TlsFiles): TlsFiles {
  const isOrdered = acmeTerms(config) !== undefined && files.certFile !== config.adminTlsCertFile;
  return isOrdered ? files : checkCertificate(files);
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

/** Returns the host for the URL of the admin API. */
export function adminHost(config: RunningConfig, tlsFolder: string): string {
  const { host } = parseHostPort(config.admin);
  const files = adminCertificateFiles(config, tlsFolder);
  return files === undefined ? host : hostToName(host, files.certFile);
}
