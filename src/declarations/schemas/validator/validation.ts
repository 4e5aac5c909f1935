import type { FieldError } from '../../../core/errors.ts';
import type { Pattern } from '../pattern.ts';
import type { JsonObject } from '../payload.ts';
import { escapeToken } from '../schema-keywords.ts';
import { EqualityTexts } from './equality-texts.ts';
import { ValueNumbers } from './unique-items.ts';

/** Limits of an error report: a path can be as long as the body, a message as the schema. */
const reportedErrorsMax = 20;
const reportedLengthMax = 256;
/** Those of holding even an empty text against a pattern. */
const patternOperations = 100;
/** Members of an object whose names are listed as fast as they are remembered. */
const smallObjectMembers = 32;

/** Members and items that a schema has looked at, for `unevaluatedProperties` and `unevaluatedItems` beside it. */
export class Evaluated {
  readonly names = new Set<string>();
  readonly indexes = new Set<number>();
  /** Items before this one. */
  items = 0;
  hasAllMembers = false;

  get size(): number {
    return this.names.size + this.indexes.size;
  }

  add(other: Evaluated): void {
    for (const name of other.names) this.names.add(name);
    for (const index of other.indexes) this.indexes.add(index);
    this.items = Math.max(this.items, other.items);
    this.hasAllMembers ||= other.hasAllMembers;
  }

  hasItem(index: number): boolean {
    return index < this.items || this.indexes.has(index);
  }

  hasMember(name: string): boolean {
    return this.hasAllMembers || this.names.has(name);
  }
}

/** How a body is held against a schema: for whether it matches, for its first error, or for all. */
export type Thoroughness = 'none' | 'first' | 'all';

/** Name or index of a value in the one around it; undefined for the body. */
interface Place {
  outer: Place | undefined;
  step: string | number;
}

interface Failure {
  place: Place | undefined;
  text: () => string;
}

/** The check of this body takes more operations than it may. */
export class TooManyOperations extends Error {}

/**
 * One body that is held against a schema. It counts operations of some 10 ns, so that the thread is never taken for
 * long, whatever the schema. @throws TooManyOperations from wherever they are counted.
 */
export class Validation {
  readonly failures: Failure[] = [];
  readonly isExhaustive: boolean;
  readonly #isReported: boolean;
  #place: Place | undefined;
  /** Equal values of the body have equal numbers. */
  #numbers: ValueNumbers | undefined;
  #texts: EqualityTexts | undefined;
  /** Names of the members of large objects: to list them takes as long as to look at all. */
  #largeObjects: Map<JsonObject, readonly string[]> | undefined;
  /** The last text whose characters were counted; the next keyword to ask is mostly of the same. */
  #counted = '';
  #countedLength = 0;

  #operationsLeft: number;

  constructor(reported: Thoroughness, operationsMax: number) {
    this.#operationsLeft = operationsMax;
    this.isExhaustive = reported === 'all';
    this.#isReported = reported !== 'none';
  }

  get operationsLeft(): number {
    return this.#operationsLeft;
  }

  spend(operations: number): void {
    this.#operationsLeft -= operations;
    if (this.#operationsLeft < 0) throw new TooManyOperations();
  }

  fits(text: string, pattern: Pattern): boolean {
    this.spend(patternOperations + text.length);
    return pattern.test(text);
  }

  get numbers(): ValueNumbers {
    this.#numbers ??= new ValueNumbers();
    return this.#numbers;
  }

  get texts(): EqualityTexts {
    this.#texts ??= new EqualityTexts();
    return this.#texts;
  }

  namesOf(value: JsonObject): readonly string[] {
    const known = this.#largeObjects?.get(value);
    if (known !== undefined) return known;
    const names = Object.keys(value);
    if (names.length > smallObjectMembers) {
      this.spend(names.length);
      this.#largeObjects ??= new Map();
      this.#largeObjects.set(value, names);
    }
    return names;
  }

  /** The length in characters of Unicode. */
  lengthOf(text: string): number {
    if (this.#counted !== text) {
      this.spend(text.length);
      let length = 0;
      for (const _character of text) length += 1;
      this.#counted = text;
      this.#countedLength = length;
    }
    return this.#countedLength;
  }

  /**
   * Always false. `text` is evaluated only for a report: most failures are of alternatives and soon forgotten, and their
   * paths and texts can each be as long as the body or the schema.
   */
  fail(text: () => string): false {
    if (this.#isReported && this.failures.length < reportedErrorsMax)
      this.failures.push({ place: this.#place, text });
    return false;
  }

  /** Forgets the failures after the first `count`: of alternatives that do not matter. */
  forget(count: number): void {
    this.failures.length = count;
  }

  /** Applies a check to a member or item. */
  within(step: string | number, check: Check, value: unknown): boolean {
    if (!this.#isReported) return check(value, this, undefined);
    const outer = this.#place;
    this.#place = { outer, step };
    const isValid = check(value, this, undefined);
    this.#place = outer;
    return isValid;
  }

  get errors(): FieldError[] {
    return this.failures.map(({ place, text }) => ({
      path: pointerTo(place).slice(0, reportedLengthMax),
      msg: text().slice(0, reportedLengthMax),
    }));
  }
}

function pointerTo(place: Place | undefined): string {
  const tokens: string[] = [];
  for (let at = place; at !== undefined; at = at.outer) tokens.push(`/${escapeToken(String(at.step))}`);
  return tokens.reverse().join('');
}

/** A schema or keyword, compiled. It notes what it evaluates, if asked for; where it fails that is meaningless. */
export type Check = (value: unknown, validation: Validation, evaluated: Evaluated | undefined) => boolean;

export const passes: Check = () => true;

/** Applies all, or up to the first that fails. */
export function allOf(checks: readonly Check[]): Check {
  const [only = passes, ...others] = checks;
  if (others.length === 0) return only;
  return (value, validation, evaluated) => {
    let isValid = true;
    for (const check of checks) {
      if (check(value, validation, evaluated)) continue;
      if (!validation.isExhaustive) return false;
      isValid = false;
    }
    return isValid;
  };
}
