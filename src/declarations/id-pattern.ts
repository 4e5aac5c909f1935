import { Pattern, patternStates } from './schemas/pattern.ts';

/** Bounds a match of a 10-character device id to a fraction of a millisecond. */
const statesMax = 1_000;
/** Bounds what compiling one takes, to some milliseconds. */
const statesCompiledMax = 3_000;
const tooLong = 'it is too long once its repetitions are written out';

/** Device ids that a claim token accepts: the whole id must match, in linear time whatever the pattern. */
export class IdPattern {
  readonly #whole: Pattern;

  /** @throws Error with the reason if the pattern is unusable. */
  constructor(source: string) {
    if (patternStates(source) > statesCompiledMax) throw new Error(tooLong);
    // Compiled alone first: otherwise `a)|(b`, which is no pattern, would be accepted.
    const { states } = new Pattern(source);
    if (states > statesMax) throw new Error(tooLong);
    this.#whole = new Pattern(`^(?:${source})$`);
  }

  test(deviceId: string): boolean {
    return this.#whole.test(deviceId);
  }
}
