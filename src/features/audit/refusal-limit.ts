import { FairShare } from '../../core/fair-share.ts';

/**
 * So many refused requests a minute have an entry, for there may be any number of them; the others are counted. Nobody
 * takes up all of them.
 */
export class RefusalLimit {
  #minute = 0;
  #taken = new FairShare(0);
  #omitted = 0;

  /** How many were omitted since the last one that was not; undefined where this one is omitted too. */
  take(owner: string, perMinuteMax: number): number | undefined {
    const minute = Math.floor(performance.now() / 60_000);
    if (minute !== this.#minute) {
      this.#minute = minute;
      this.#taken = new FairShare(perMinuteMax);
    }
    this.#taken.max = perMinuteMax;
    if (!this.#taken.take(owner)) {
      this.#omitted += 1;
      return undefined;
    }
    const omitted = this.#omitted;
    this.#omitted = 0;
    return omitted;
  }
}
