/** A count of one repetition as RE2 reads it; anything else in braces is text. */
const repetition = /\{(0|[1-9]\d*)(,(0|[1-9]\d*)?)?\}/y;
/** A part that is taken whole: a class of Unicode, or a character by its number. */
const namedEscape = /\\(?:[pP](?:\{[^}]*\}?|[\s\S]?)|x\{[^}]*\}?|[\s\S]?)/uy;
const foldingFlag = /\(\?[a-zA-Z-]*i/;
/** More ranges than any class of Unicode has, negated or folded. */
const unicodeRanges = 800;
/** Ranges that the parser reads in the time of one state: those of `\p{L}` take 0.3 ms. */
const rangesParsedPerState = 8;
/** Characters whose cases the parser looks up in the time of one state. */
const foldsPerState = 64;
/** Ranges by which each state of a class costs another: the engine goes through all before its first match. */
const rangesPerState = 64;
/** The instruction that fails, and the one that matches; and what stands for nothing. */
const programStates = 3;
/** Both ends of a group, or what stands for an empty one. */
const groupStates = 3;
/** A branch, and what stands for an empty alternative. */
const alternativeStates = 2;
/** States of `*`, at most: a loop and, around what may be empty, a branch. */
const loopStates = 2;

/** The part between two parentheses so far. */
interface Group {
  states: number;
  /** Those of the part that a repetition would apply to. */
  last: number;
}

/**
 * An upper bound of what compiling an expression of RE2 costs, in states of its program, found without compiling it:
 * repetitions are written out, and what is costly about classes is counted in states too. Compiling costs up to 5 µs
 * and a kilobyte for each, whatever the expression.
 */
export function statesAtMost(expression: string): number {
  return new PatternWalk(expression).states();
}

/** Follows RE2's own parser. Where that refuses an expression, any count will do. */
class PatternWalk {
  readonly #expression: string;
  /** True if cases are folded anywhere. */
  readonly #isFolding: boolean;
  readonly #groups: Group[] = [];
  #open: Group = { states: 0, last: 0 };
  /** States of work that is done once for a part, however often it is repeated. */
  #once = 0;
  #position = 0;

  constructor(expression: string) {
    this.#expression = expression;
    this.#isFolding = foldingFlag.test(expression);
  }

  states(): number {
    const { length } = this.#expression;
    while (this.#position < length) this.#take(this.#expression[this.#position] ?? '');
    // Those that are left open are refused.
    while (this.#groups.length > 0) this.#close();
    return programStates + length + Math.ceil(this.#once) + this.#open.states;
  }

  #take(character: string): void {
    this.#position += 1;
    if (character === '(') this.#enter();
    else if (character === ')') this.#close();
    else if (character === '[') this.#class();
    else if (character === '\\') this.#escape();
    else if (character === '|') this.#add(alternativeStates);
    else if (character === '*') this.#repeat(this.#open.last + loopStates);
    else if (character === '+' || character === '?') this.#repeat(this.#open.last + 1);
    else if (character === '{') this.#braces();
    else this.#add(1);
  }

  #add(states: number): void {
    this.#open.states += states;
    this.#open.last = states;
  }

  /** Replaces the last part by its repetition. */
  #repeat(states: number): void {
    this.#open.states += states - this.#open.last;
    this.#open.last = states;
  }

  #enter(): void {
    const flags = /\?(?:P?<[^>]*>|[a-zA-Z-]*[:)]?)/y;
    flags.lastIndex = this.#position;
    const found = flags.exec(this.#expression)?.[0] ?? '';
    this.#position += found.length;
    // Flags by themselves are no group: a repetition behind them applies to what is before.
    if (found.endsWith(')')) return;
    this.#groups.push(this.#open);
    this.#open = { states: 0, last: 0 };
  }

  #close(): void {
    const outer = this.#groups.pop();
    if (outer === undefined) return;
    const { states } = this.#open;
    this.#open = outer;
    this.#add(states + groupStates);
  }

  #braces(): void {
    repetition.lastIndex = this.#position - 1;
    const [text, least = '', more, most] = repetition.exec(this.#expression) ?? [];
    if (text === undefined) {
      this.#add(1);
      return;
    }
    this.#position += text.length - 1;
    const { last } = this.#open;
    const min = Number(least);
    const max = more === undefined ? min : Number(most ?? Math.max(min, 1));
    const branches = more === undefined ? 0 : max - Math.min(min, max) + loopStates;
    this.#repeat(Math.max(max, 1) * last + branches);
  }

  /** An escape outside of brackets. */
  #escape(): void {
    if (this.#expression[this.#position] === 'Q') {
      const end = this.#expression.indexOf('\\E', this.#position);
      const literal = this.#expression.slice(this.#position + 1, end < 0 ? undefined : end);
      this.#position = end < 0 ? this.#expression.length : end + 2;
      // A repetition behind it applies to its last character.
      this.#open.states += literal.length;
      if (literal.length > 0) this.#open.last = 1;
      return;
    }
    this.#addClass(this.#named());
  }

  /** Goes on behind an escape; returns its ranges. */
  #named(): number {
    namedEscape.lastIndex = this.#position - 1;
    const [text = '\\'] = namedEscape.exec(this.#expression) ?? [];
    this.#position += text.length - 1;
    if (/^\\[pP]/.test(text)) {
      this.#once += unicodeRanges / rangesParsedPerState;
      return unicodeRanges;
    }
    return 1;
  }

  /** A class in brackets. */
  #class(): void {
    const { length } = this.#expression;
    if (this.#expression[this.#position] === '^') this.#position += 1;
    let ranges = 1;
    let isFirst = true;
    while (this.#position < length && (isFirst || this.#expression[this.#position] !== ']')) {
      isFirst = false;
      ranges += this.#member();
    }
    this.#position += 1;
    this.#addClass(ranges);
  }

  #addClass(ranges: number): void {
    this.#add(1 + Math.floor(Math.min(ranges, unicodeRanges) / rangesPerState));
  }

  /** A range, or a class within a class; returns how many ranges it makes. */
  #member(): number {
    const rest = this.#expression.startsWith('[:', this.#position)
      ? this.#expression.indexOf(':]', this.#position)
      : -1;
    if (rest >= 0) {
      this.#position = rest + 2;
      return 8;
    }
    const [low, ranges] = this.#character();
    const isRange = this.#expression[this.#position] === '-' && this.#expression[this.#position + 1] !== ']';
    if (!isRange || ranges > 1) return ranges + (this.#isFolding ? 3 : 0);
    this.#position += 1;
    const [high] = this.#character();
    const span = Math.max(high - low, 1);
    if (!this.#isFolding) return 1;
    this.#once += Math.min(span, 0x20000) / foldsPerState;
    return Math.min(4 * span, unicodeRanges);
  }

  /** One end of a range: its code point, if that is written as it is or by its number, and its ranges. */
  #character(): [code: number, ranges: number] {
    const code = this.#expression.codePointAt(this.#position) ?? 0;
    this.#position += code > 0xffff ? 2 : 1;
    if (code !== 0x5c) return [code, 1];
    const start = this.#position;
    const ranges = this.#named();
    const digits = /^x\{?([0-9a-fA-F]*)/.exec(this.#expression.slice(start, start + 12))?.[1];
    return [digits === undefined ? 0 : Number.parseInt(digits.slice(0, 8), 16) || 0, ranges];
  }
}
