import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type HostPort, parseHostPort } from '../../core/address.ts';
import { OperatorError } from '../../core/errors.ts';
import type { RunningConfig } from '../configuration/config.ts';

/** As many as Let's Encrypt takes in one certificate. */
const domainsMax = 100;

/** Terms of ordering a certificate: for which domains, and from whom. */
export interface AcmeTerms {
  domains: readonly string[];
  directory: string;
  /** Empty: the authorities of Node. */
  directoryCaFile: string;
  /** Empty: none. */
  contact: string;
  /** Address for HTTP-01 challenges. */
  listen: HostPort;
}

/** Returns undefined if ACME is off. @throws OperatorError for keys that contradict each other. */
export function acmeTerms(config: RunningConfig): AcmeTerms | undefined {
  const { acmeDomains, acmeTermsAgreed, acmeDirectory, acmeDirectoryCaFile, acmeContact, acmeListen } =
    config;
  if (acmeDomains === '') return undefined;
  const { tlsCertFile, tlsKeyFile } = config.settings.current;
  if (tlsCertFile !== '' || tlsKeyFile !== '') {
    throw new OperatorError(
      'Configuration: acmeDomains obtains a certificate, and tlsCertFile or tlsKeyFile names another. Set one or the other.',
    );
  }
  if (!acmeTermsAgreed) {
    throw new OperatorError(
      `Configuration: read the terms of service of ${acmeDirectory}, and agree to them with acmeTermsAgreed.`,
    );
  }
  const domains = [...new Set(acmeDomains.split(',').map((domain) => domain.trim().toLowerCase()))];
  if (domains.length > domainsMax) {
    throw new OperatorError(`Configuration: a certificate has at most ${domainsMax} names (acmeDomains).`);
  }
  return {
    domains,
    directory: acmeDirectory,
    directoryCaFile: checkedAuthority(acmeDirectoryCaFile),
    contact: acmeContact.replace(/^mailto:/, ''),
    listen: parseHostPort(acmeListen),
  };
}

/** Looks at the file now: an order would fail by it weeks later. @throws OperatorError. */
function checkedAuthority(file: string): string {
  if (file === '') return file;
  try {
    const [pem] =
      readFileSync(file, 'latin1').match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/) ?? [];
    if (pem === undefined) throw new Error('it has no certificate in PEM');
    new X509Certificate(pem);
    return file;
  } catch (error) {
    throw new OperatorError(
      `Configuration: acmeDirectoryCaFile ${file} cannot be used: ${(error as Error).message}.`,
    );
  }
}
