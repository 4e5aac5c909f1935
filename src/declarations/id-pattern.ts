import { Pattern } from './schemas/pattern.ts';

export const idPatternLengthMax = 256;
/** A device id of 10 characters then takes a fraction of a millisecond. */
const statesMax = 1_000;

/** Which device ids a claim token takes: the whole id must match, in time that is linear whatever the pattern. */
export class IdPattern {
  readonly #whole: Pattern;

  /** @throws Error saying why it cannot be taken. */
  constructor(source: string) {
    // By itself first: else `a)|(b` would be none, and be taken.
    const { states } = new Pattern(source);
    if (states > statesMax) throw new Error('it is too long once its repetitions are written out');
    this.#whole = new Pattern(`^(?:${source})$`);
  }

  test(deviceId: string): boolean {
    return this.#whole.test(deviceId);
  }
}
