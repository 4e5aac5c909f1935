import { sleep } from '../../../core/async.ts';
import { RateLimiter } from '../../../core/rate-limiter.ts';
import type { BroadcastConfig } from '../config.ts';

/** Mails of one write: half a millisecond of the shard's thread, for which devices wait. */
const batchMax = 16;
const batchesPerSecond = 10;
const chunkMax = 1_024;

/** Spreads the mails of all broadcasts over time. What was not used is not made up for. */
export class MailRate {
  readonly #config: BroadcastConfig;
  readonly #limiter = new RateLimiter(0);

  constructor(config: BroadcastConfig) {
    this.#config = config;
  }

  /** Smaller where mails are to come slowly, so that they come evenly and nobody waits long to be stopped. */
  get batchSize(): number {
    return Math.min(batchMax, Math.ceil(this.#config.broadcastMailsPerSecondMax / batchesPerSecond));
  }

  /** Devices from one note of the progress to the next. */
  get chunkSize(): number {
    return Math.min(
      chunkMax,
      Math.max(this.batchSize, Math.ceil(this.#config.broadcastMailsPerSecondMax / 2)),
    );
  }

  /** Settles when it is the turn of so many. */
  async take(mails: number): Promise<void> {
    const { broadcastMailsPerSecondMax: perSecondMax } = this.#config;
    const wait = this.#limiter.wait(perSecondMax, mails);
    this.#limiter.spend(perSecondMax, mails);
    await sleep(wait * 1_000);
  }
}
