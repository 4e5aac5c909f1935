import { RE2JS, RE2Set } from 're2js';
import { statesAtMost } from './pattern-size.ts';

/** The reason for refusing a pattern. */
export class InvalidPattern extends Error {}

/**
 * Memory in bytes for the automaton that the engine builds as it meets texts: for each state of the pattern, at least,
 * and at most. The automata of usual patterns need half of it. Where it does not suffice, as for `[ab]*a[ab]{18}`, the
 * engine goes through all states for each character at 0.07 µs each, where it would make new ones at 2.6 µs each; its
 * own default of 8 MB for each pattern let one device fill the memory of its worker.
 */
const automatonBytesPerState = 512;
const automatonBytesMin = 8_192;
const automatonBytesMax = 65_536;
const repeatRefused = 'invalid repeat count';

/** Upper bound of the states of a pattern, without compiling it; see `statesAtMost`. */
export function patternStates(source: string): number {
  return statesAtMost(RE2JS.translateRegExp(source));
}

/** A regular expression by RE2: linear time whatever a device sends, but without look-around and back-references. */
export class Pattern {
  readonly #source: string;
  readonly #expression: RE2Set;

  /**
   * Takes time and memory for each of `patternStates`: bound them first.
   * @throws InvalidPattern naming the unsupported part of the pattern.
   */
  constructor(source: string) {
    this.#source = source;
    const expression = RE2JS.translateRegExp(source);
    const wanted = statesAtMost(expression) * automatonBytesPerState;
    const automatonBytes = Math.min(automatonBytesMax, Math.max(automatonBytesMin, wanted));
    // A set of one: only for a set can the memory be bounded, and none is prepared to match in one pass, which takes
    // seconds for some patterns of a kilobyte.
    this.#expression = new RE2Set(RE2Set.UNANCHORED, 0, automatonBytes);
    try {
      this.#expression.add(expression);
      this.#expression.compile();
    } catch (error) {
      const reason = (error as Error).message.replace(/^error parsing regexp: /, '');
      const advice = reason.startsWith(repeatRefused) ? '; over 1000, say * or + and maxLength' : '';
      throw new InvalidPattern(reason + advice);
    }
  }

  /** True if the pattern matches anywhere in the text, as JSON Schema demands. */
  test(text: string): boolean {
    return this.#expression.match(text).length > 0;
  }

  /** Upper bound of states per character of text. */
  get states(): number {
    return this.#expression.prog.numInst();
  }

  toString(): string {
    return this.#source;
  }
}
