import type { FieldError } from '../../../core/errors.ts';
import type { Pattern } from '../pattern.ts';
import type { JsonObject } from '../payload.ts';
import { escapeToken } from '../schema-keywords.ts';
import { EqualityTexts } from './equality-texts.ts';
import { ValueNumbers } from './unique-items.ts';

/** Limits of an error report: a path can be as long as the body, a message as the schema. */
const reportedErrorsMax = 20;
const reportedLengthMax = 256;
/** Characters of a failing value that are told to operators. */
const shownValueMax = 64;
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
  value: unknown;
  text: () => string;
}

/** Why a body does not match. */
export interface Mismatch {
  errors: FieldError[];
  /** What the first error is about, as JSON; undefined for an object or a list. */
  value?: string | undefined;
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
  /** What stands at that place. */
  #value: unknown;
  /** Equal values of the body have equal numbers. */
  #numbers: ValueNumbers | undefined;
  #texts: EqualityTexts | undefined;
  /** Names of the members of large objects: to list them takes as long as to look at all. */
  #largeObjects: Map<JsonObject, readonly string[]> | undefined;
  /** The last text whose characters were counted; the next keyword to ask is mostly of the same. */
  #counted = '';
  #countedLength = 0;

  #operationsLeft: number;

  constructor(body: unknown, reported: Thoroughness, operationsMax: number) {
    this.#value = body;
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
      this.failures.push({ place: this.#place, value: this.#value, text });
    return false;
  }

  /** Forgets the failures after the first `count`: of alternatives that do not matter. */
  forget(count: number): void {
    this.failures.length = count;
  }

  /** Applies a check to a member or item. */
  within(step: string | number, check: Check, value: unknown): boolean {
    if (!this.#isReported) return check(value, this, undefined);
    const [outer, around] = [this.#place, this.#value];
    this.#place = { outer, step };
    this.#value = value;
    const isValid = check(value, this, undefined);
    this.#place = outer;
    this.#value = around;
    return isValid;
  }

  get mismatch(): Mismatch {
    const errors = this.failures.map(({ place, text }) => ({
      path: beginningOf(pointerTo(place), reportedLengthMax),
      msg: beginningOf(text(), reportedLengthMax),
    }));
    return { errors, value: shownValue(this.failures[0]?.value) };
  }
}

/** A text of its own: errors outlive their request, and a slice keeps the whole text in memory that it is of. */
function beginningOf(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text;
  return Buffer.from(text.slice(0, lengthMax), 'utf16le').toString('utf16le');
}

function shownValue(value: unknown): string | undefined {
  if (typeof value === 'string') {
    const shown = JSON.stringify(value.slice(0, shownValueMax));
    return value.length > shownValueMax ? `${shown}…` : shown;
  }
  return typeof value === 'object' && value !== null ? undefined : String(value);
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
