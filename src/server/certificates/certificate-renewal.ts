import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Mutex } from '../../core/async.ts';
import type { TlsFiles } from '../../core/config/tls.ts';
import type { Log } from '../../core/telemetry/log.ts';
import { certificateEndMs, checkCertificate } from './certificate-content.ts';

const pollIntervalMs = 5_000;

export interface RenewalOptions {
  /** The listener of the certificate, as the log names it. */
  listener: 'device API' | 'admin API';
  /** Returns the current paths of the files. */
  files(): TlsFiles;
  /** Uses the files for new connections. */
  renew(tls: TlsFiles): void | Promise<void>;
  log: Log;
}

/**
 * Loads a new certificate when its files change. Compares their content, because links switched to other files, as
 * certbot and Kubernetes do it, reveal nothing else. A pair that is partly written or does not match is refused once,
 * and the next change is tried again; one that could not be handed over is tried again at each poll.
 */
export class CertificateRenewal {
  readonly #options: RenewalOptions;
  readonly #timer: NodeJS.Timeout;
  #digest: string;
  /** Why the last hand-over failed; logged once. */
  #failure = '';
  #endMs: number;
  readonly #mutex = new Mutex();

  private constructor(options: RenewalOptions, digest: string) {
    this.#options = options;
    this.#digest = digest;
    this.#endMs = certificateEndMs(options.files());
    this.#timer = setInterval(() => this.poll(), pollIntervalMs);
  }

  /** Assumes that the current files are those in use. */
  static async start(options: RenewalOptions): Promise<CertificateRenewal> {
    return new CertificateRenewal(options, await digestOf(options.files()));
  }

  get listener(): RenewalOptions['listener'] {
    return this.#options.listener;
  }

  /** When the certificate in use expires. */
  get endMs(): number {
    return this.#endMs;
  }

  /** Checks the files for a change; one poll at a time. */
  poll(): Promise<void> {
    return this.#mutex.run(() => this.#poll());
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#mutex.settled();
  }

  async #poll(): Promise<void> {
    const { listener, files, renew, log } = this.#options;
    const { certFile, keyFile } = files();
    // Before they are used: if they change meanwhile, the next poll finds it.
    const digest = await digestOf({ certFile, keyFile });
    if (digest === this.#digest) return;
    let checked: TlsFiles;
    try {
      checked = checkCertificate({ certFile, keyFile });
    } catch (error) {
      this.#digest = digest;
      const { message: reason } = error as Error;
      log.error({ listener, reason }, 'certificate renewal failed; keeping the current certificate');
      return;
    }
    try {
      await renew(checked);
      this.#digest = digest;
      this.#failure = '';
      this.#endMs = certificateEndMs({ certFile });
      log.info({ listener, certFile }, 'certificate renewed for new connections');
    } catch (error) {
      const { message: reason } = error as Error;
      if (reason !== this.#failure) {
        log.error({ listener, reason }, 'certificate could not be handed over; trying again');
      }
      this.#failure = reason;
    }
  }
}

/** Hashes the files; for one that cannot be read, the code of its error. */
async function digestOf({ certFile, keyFile }: TlsFiles): Promise<string> {
  const hash = createHash('sha256');
  for (const file of [certFile, keyFile]) {
    const content = await readFile(file).catch((error: NodeJS.ErrnoException) => String(error.code));
    hash.update(`${content.length}:`).update(content);
  }
  return hash.digest('hex');
}
