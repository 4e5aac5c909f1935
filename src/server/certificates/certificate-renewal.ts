import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Mutex } from '../../core/async.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type { TlsFiles } from '../../device-api/uws/uws.ts';
import { checkCertificate } from './certificate.ts';

const lookIntervalMs = 5_000;

export interface RenewalOptions {
  /** Where the files are now. */
  files(): TlsFiles;
  /** Serves new connections with them. */
  renew(tls: TlsFiles): Promise<void>;
  log: Log;
}

/**
 * Takes a new certificate into service when its files change. It is their content that is looked at: links
 * that are turned to other files, as certbot and Kubernetes do it, show nothing else. A pair that is half
 * written or does not fit is refused, once, and whatever comes after it is looked at again.
 */
export class CertificateRenewal {
  readonly #options: RenewalOptions;
  readonly #timer: NodeJS.Timeout;
  #seen: string;
  readonly #looks = new Mutex();

  private constructor(options: RenewalOptions, seen: string) {
    this.#options = options;
    this.#seen = seen;
    this.#timer = setInterval(() => this.look(), lookIntervalMs);
  }

  /** The files as they are now are those in service. */
  static async start(options: RenewalOptions): Promise<CertificateRenewal> {
    return new CertificateRenewal(options, await digestOf(options.files()));
  }

  /** One look after another. */
  look(): Promise<void> {
    return this.#looks.run(() => this.#look());
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looks.settled();
  }

  async #look(): Promise<void> {
    const { files, renew, log } = this.#options;
    const { certFile, keyFile } = files();
    // Before they are used: should they change meanwhile, the next look finds that.
    const digest = await digestOf({ certFile, keyFile });
    if (digest === this.#seen) return;
    this.#seen = digest;
    try {
      await renew(checkCertificate({ certFile, keyFile }));
      log.info({ certFile }, 'new connections get the new certificate');
    } catch (error) {
      log.error(
        { reason: (error as Error).message },
        'the certificate files have changed but cannot be used; the certificate in service stays',
      );
    }
  }
}

/** Of what cannot be read the reason counts, which is an error's code and path. */
async function digestOf({ certFile, keyFile }: TlsFiles): Promise<string> {
  const hash = createHash('sha256');
  for (const file of [certFile, keyFile]) {
    const content = await readFile(file).catch((error: NodeJS.ErrnoException) => String(error.code));
    hash.update(`${content.length}:`).update(content);
  }
  return hash.digest('hex');
}
