import { clientAddressOf } from '../../core/address.ts';
import { monotonicSeconds } from '../../core/clock.ts';
import type { Settings } from '../../core/config/settings.ts';
import { type ApiError, rateLimited } from '../../core/errors.ts';
import type { RequestRates } from '../limits/request-rates.ts';

export interface AnonymousLimits {
  anonymousRequestsPerSecondMax: number;
}

interface Client {
  readonly startedAtMs: number;
  /** Undefined once the client has disconnected. */
  readonly addressBytes: Uint8Array | undefined;
}

const windowMs = 1_000;

/**
 * Limits requests per address without valid credentials. Checked after the credentials, so that valid devices behind
 * the same address are not limited. An address lookup costs half as much as all of `GET /`, so it is skipped while
 * this worker's anonymous answers in total stay below its share of what one address may have.
 */
export class AnonymousRate {
  readonly #settings: Settings<AnonymousLimits>;
  readonly #rates: RequestRates;
  readonly #workers: number;
  #windowEndMs = 0;
  #answers = 0;

  constructor(settings: Settings<AnonymousLimits>, rates: RequestRates, workers: number) {
    this.#settings = settings;
    this.#rates = rates;
    this.#workers = workers;
  }

  /** Counts a request; returns the error to refuse it with if it exceeds the limit. */
  refusal(client: Client): ApiError | undefined {
    const { anonymousRequestsPerSecondMax: max } = this.#settings.current;
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
      `This address sends more than ${max} requests a second without valid credentials (anonymousRequestsPerSecondMax). Retry later.`,
      wait,
    );
  }
}
