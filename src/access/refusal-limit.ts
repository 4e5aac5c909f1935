/** So many refused requests a minute have an entry, for there may be any number of them; the others are counted. */
export class RefusalLimit {
  #minute = 0;
  #taken = 0;
  #omitted = 0;

  /** How many were omitted since the last one that was not; undefined where this one is omitted too. */
  take(perMinuteMax: number): number | undefined {
    const minute = Math.floor(performance.now() / 60_000);
    if (minute !== this.#minute) {
      this.#minute = minute;
      this.#taken = 0;
    }
    if (this.#taken >= perMinuteMax) {
      this.#omitted += 1;
      return undefined;
    }
    this.#taken += 1;
    const omitted = this.#omitted;
    this.#omitted = 0;
    return omitted;
  }
}
