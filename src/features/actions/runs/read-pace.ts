import { sleep } from '../../../core/async.ts';
import type { Settings } from '../../../core/config/settings.ts';
import { RateLimiters } from '../../../core/limits/rate-limiter.ts';

/** Reads that a fleet has not used are saved up for so long. */
const burstSeconds = 1;

/**
 * Limits what the runs of one fleet read a second: each read takes this thread some time, or the database, and a run
 * that reads without end would have no pause between two. Further reads wait, and with them their run and its thread.
 */
export class ReadPace {
  readonly #settings: Settings<{ actionReadsPerSecondMax: number }>;
  readonly #fleets = new RateLimiters(burstSeconds);

  constructor(settings: Settings<{ actionReadsPerSecondMax: number }>) {
    this.#settings = settings;
  }

  /** Settles when the fleet may read once more. A run bounds how many of its reads wait. */
  async take(fleetId: string): Promise<void> {
    const { actionReadsPerSecondMax: perSecondMax } = this.#settings.current;
    const rate = this.#fleets.of(fleetId);
    const waitSeconds = rate.wait(perSecondMax);
    rate.spend(perSecondMax);
    await sleep(1_000 * waitSeconds);
  }
}
