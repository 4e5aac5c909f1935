import { clientAddressOf } from '../../core/address.ts';
import { monotonicSeconds } from '../../core/clock.ts';
import { type ApiError, rateLimited } from '../../core/errors.ts';
import type { RequestRates } from '../limits/request-rates.ts';

export interface AnonymousLimits {
  anonymousRequestsPerSecondMax: number;
}

/** An exchange, as far as its rate is concerned. */
interface Client {
  readonly startedAtMs: number;
  /** Undefined once the client has gone. */
  readonly addressBytes: Uint8Array | undefined;
}

const windowMs = 1_000;

/**
 * Bounds how often one address is answered without valid credentials. It is asked once these were looked at, so that
 * whoever shares the address and has them is let in. To look an address up costs half as much as all of `GET /`: that
 * is left out as long as this worker answers no more to all of them than its part of what one may have.
 */
export class AnonymousRate {
  readonly #limits: AnonymousLimits;
  readonly #rates: RequestRates;
  readonly #workers: number;
  #windowEndMs = 0;
  #answers = 0;

  constructor(limits: AnonymousLimits, rates: RequestRates, workers: number) {
    this.#limits = limits;
    this.#rates = rates;
    this.#workers = workers;
  }

  /** Counts a request; answers what to refuse it with where it is one too many. */
  refusal(client: Client): ApiError | undefined {
    const { anonymousRequestsPerSecondMax: max } = this.#limits;
    const { startedAtMs } = client;
    if (max === 0) return undefined;
    if (startedAtMs >= this.#windowEndMs) {
      this.#windowEndMs = startedAtMs + windowMs;
      this.#answers = 0;
    }
    this.#answers += 1;
    if (this.#answers * this.#workers <= max) return undefined;
    const { addressBytes } = client;
    if (addressBytes === undefined) return undefined;
    const bucket = this.#rates.bucketOf(clientAddressOf(addressBytes));
    const wait = this.#rates.take(bucket, max, monotonicSeconds(startedAtMs));
    if (wait === 0) return undefined;
    return rateLimited(
      `This address sends more than ${max} requests a second without valid credentials (anonymousRequestsPerSecondMax).`,
      wait,
    );
  }
}
