import { sleep } from '../../core/async.ts';
import { OperatorError } from '../../core/errors.ts';
import type { Log } from '../../core/telemetry/log.ts';
import { AcmeError } from './acme-directory.ts';
import { type AcmeFiles, orderFailureOf } from './acme-files.ts';
import { createAccountKey, orderCertificate } from './acme-order.ts';
import type { AcmeTerms } from './acme-terms.ts';
import { openChallengeListener } from './challenge-listener.ts';

/** Longest sleep: timers know nothing of a clock that is set or a machine that was suspended. */
const checkIntervalMs = 3_600_000;
/** First delays after a failed order. Directories limit how often one may fail, but not how often nobody answers. */
const unreachableDelayMs = 5_000;
const failedDelayMs = 60_000;
const delayMaxMs = 6 * 3_600_000;

export interface AcmeRenewalOptions {
  terms: AcmeTerms;
  files: AcmeFiles;
  /** Uses the stored certificate for new connections. */
  renew(): Promise<unknown>;
  log: Log;
}

/**
 * Keeps a certificate from an ACME directory: orders it when there is none, and again with a third of its life left. A
 * failed order is repeated for as long as it takes; meanwhile the last certificate is served. `/readyz` says nothing of
 * it: a balancer that takes a node without a certificate out of service would take its challenges away, too.
 */
export class AcmeRenewal {
  readonly #options: AcmeRenewalOptions;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  /** No order before, whatever the certificate says. */
  #earliestMs: number;
  #failures = 0;

  private constructor(options: AcmeRenewalOptions) {
    this.#options = options;
    this.#earliestMs = earliestMsOf(options.files);
    this.#running = this.#run();
  }

  /** @throws OperatorError when it cannot listen for challenges: better now than at a renewal. */
  static async start(options: AcmeRenewalOptions): Promise<AcmeRenewal> {
    try {
      const listener = await openChallengeListener(options.terms.listen, new Map());
      await listener.close();
    } catch (error) {
      throw new OperatorError((error as Error).message);
    }
    return new AcmeRenewal(options);
  }

  /** Number of failed orders since the last one that succeeded. */
  get failures(): number {
    return this.#failures;
  }

  /** Gives up an order under way. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { files, terms } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const dueMs = Math.max(files.renewalMs(terms.domains), this.#earliestMs);
      const waitMs = dueMs - Date.now();
      if (waitMs > 0) await sleep(Math.min(waitMs, checkIntervalMs), signal);
      else await this.#order();
    }
  }

  async #order(): Promise<void> {
    const { terms, files, renew, log } = this.#options;
    const { signal } = this.#closing;
    const { domains, directory } = terms;
    log.info({ domains, directory }, 'ordering a certificate');
    try {
      const accountKey = await files.accountKey(createAccountKey);
      files.store(await orderCertificate({ terms, accountKey, signal }));
      files.note(undefined);
      this.#failures = 0;
      // Whatever a wrong clock makes of its dates, it is not renewed at once.
      this.#earliestMs = Date.now() + files.lifeMs / 3;
    } catch (error) {
      if (!signal.aborted) this.#fail(error as Error);
      return;
    }
    await renew();
  }

  #fail(error: Error): void {
    const { files, log } = this.#options;
    this.#failures += 1;
    const retryAfterSeconds = error instanceof AcmeError ? error.retryAfterSeconds : 0;
    const isUnreachable = error instanceof AcmeError && error.isUnreachable;
    const ownDelayMs = orderDelayMs(this.#failures, isUnreachable, Math.random());
    const delayMs = Math.max(ownDelayMs, retryAfterSeconds * 1_000);
    const nowMs = Date.now();
    this.#earliestMs = nowMs + delayMs;
    const retryAt = new Date(this.#earliestMs).toISOString();
    const { message: reason } = error;
    log.error(
      { reason, failures: this.#failures, retryAt },
      'certificate order failed; keeping the current certificate',
    );
    try {
      files.note({
        reason,
        failed_at: new Date(nowMs).toISOString(),
        retry_at: retryAt,
        ...(retryAfterSeconds > 0 && { retry_after_seconds: retryAfterSeconds }),
      });
    } catch (err) {
      log.error({ err }, 'writing why a certificate order failed failed');
    }
  }
}

/**
 * Returns the delay after a number of failed orders in a row: doubling up to six hours, and up to a quarter shorter, so
 * that nodes that failed together do not try together.
 */
export function orderDelayMs(failures: number, isUnreachable: boolean, random: number): number {
  const firstMs = isUnreachable ? unreachableDelayMs : failedDelayMs;
  return Math.min(firstMs * 2 ** (failures - 1), delayMaxMs) * (1 - random / 4);
}

/** A restart tries at once, unless the directory has asked to wait. */
function earliestMsOf({ tls }: AcmeFiles): number {
  const failure = orderFailureOf(tls.certFile);
  return failure?.retry_after_seconds === undefined ? 0 : Date.parse(failure.retry_at) || 0;
}
