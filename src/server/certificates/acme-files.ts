import { createHash, X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { certificateHosts, type TlsFiles } from '../../core/config/tls.ts';
import { replaceFile } from '../../core/replace-file.ts';
import type { AcmeTerms } from './acme-terms.ts';
import type { KeyedCertificate } from './authority.ts';
import { checkCertificate } from './certificate-content.ts';

const temporaryDays = 1;
const ownerOnly = { mode: 0o600 };

/** Why the last order failed, as it is kept beside the certificate. */
export interface OrderFailure {
  reason: string;
  failed_at: string;
  retry_at: string;
  /** Set if the directory asked for it: then a restart waits, too. */
  retry_after_seconds?: number;
}

/**
 * The files of one directory in the data folder, for its account and its certificate: another directory, a staging one
 * say, has files of its own. They always hold a pair that can be served.
 */
export class AcmeFiles {
  readonly tls: TlsFiles;
  readonly #accountKeyFile: string;

  constructor({ directory }: AcmeTerms, tlsFolder: string) {
    const digest = createHash('sha256').update(directory).digest('hex').slice(0, 8);
    const host = new URL(directory).hostname.replace(/[^a-z0-9.-]/g, '');
    const folder = join(tlsFolder, 'acme', `${host}-${digest}`);
    this.tls = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') };
    this.#accountKeyFile = join(folder, 'account-key.pem');
  }

  /**
   * Writes a temporary certificate if there is none that can be served, so that the server starts without the directory:
   * self-signed, so devices refuse it and send nothing, and short-lived, so that whoever watches the end of
   * certificates is warned.
   */
  async makeUsable(domains: readonly string[]): Promise<void> {
    try {
      checkCertificate(this.tls);
    } catch {
      // Imported here: it takes longer to load than everything else a start needs.
      const { createSelfSigned } = await import('./authority.ts');
      this.store(await createSelfSigned({ hosts: domains, days: temporaryDays }));
    }
  }

  /** Returns when to renew the certificate: now if it is temporary, for other names, or not there. */
  renewalMs(domains: readonly string[]): number {
    const certificate = this.#read();
    if (certificate === undefined) return 0;
    const hosts = certificateHosts(certificate);
    const isOrdered = certificate.issuer !== certificate.subject;
    const isForDomains = hosts.length === domains.length && domains.every((domain) => hosts.includes(domain));
    return isOrdered && isForDomains ? renewalMsOf(certificate) : 0;
  }

  /** Validity of the certificate. */
  get lifeMs(): number {
    const certificate = this.#read();
    return certificate === undefined ? 0 : lifeMsOf(certificate);
  }

  store({ certificate, key }: KeyedCertificate): void {
    const { certFile, keyFile } = this.tls;
    mkdirSync(dirname(certFile), { recursive: true, mode: 0o700 });
    // A crash in between leaves a pair that does not match, which is not usable.
    replaceFile(keyFile, key, ownerOnly);
    replaceFile(certFile, certificate, ownerOnly);
  }

  /** Returns the account's key, which `create` makes first. */
  async accountKey(create: () => Promise<string>): Promise<string> {
    try {
      return readFileSync(this.#accountKeyFile, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      const key = await create();
      replaceFile(this.#accountKeyFile, key, ownerOnly);
      return key;
    }
  }

  #read(): X509Certificate | undefined {
    try {
      return new X509Certificate(readFileSync(this.tls.certFile));
    } catch {
      return undefined;
    }
  }

  /** Keeps why an order failed, or forgets it. */
  note(failure: OrderFailure | undefined): void {
    const file = failureFileOf(this.tls.certFile);
    if (failure === undefined) rmSync(file, { force: true });
    else replaceFile(file, JSON.stringify(failure), ownerOnly);
  }
}

type Validity = Pick<X509Certificate, 'validFrom' | 'validTo'>;

function lifeMsOf({ validFrom, validTo }: Validity): number {
  return Date.parse(validTo) - Date.parse(validFrom);
}

/** Returns when a certificate is to be renewed: with a third of its life left, whether that is 90 days or 6. */
export function renewalMsOf(validity: Validity): number {
  return Date.parse(validity.validTo) - lifeMsOf(validity) / 3;
}

/** Reads why the last order of a certificate failed; undefined if it did not, or it is none of ACME. */
export function orderFailureOf(certFile: string): OrderFailure | undefined {
  try {
    return JSON.parse(readFileSync(failureFileOf(certFile), 'utf8')) as OrderFailure;
  } catch {
    return undefined;
  }
}

function failureFileOf(certFile: string): string {
  return join(dirname(certFile), 'order-failure.json');
}
