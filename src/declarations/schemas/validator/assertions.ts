import type { JsonObject } from '../payload.ts';
import type { SchemaPatterns } from '../schema-patterns.ts';
import { EqualityTexts } from './equality-texts.ts';
import type { Check, Validation } from './validation.ts';

/** A keyword for values of one type; others pass. */
type Test<T> = (value: T, validation: Validation) => boolean;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * A test for members of this name. JSON has no `undefined`; only of what every JavaScript object inherits, such as
 * `constructor`, must be asked whose it is, which takes longer.
 */
export function memberTest(name: string): (value: JsonObject) => boolean {
  if (name in Object.prototype) return (value) => Object.hasOwn(value, name);
  return (value) => value[name] !== undefined;
}

export function onObjects(test: Test<JsonObject>): Check {
  return (value, validation) => !isJsonObject(value) || test(value, validation);
}

export function onArrays(test: Test<readonly unknown[]>): Check {
  return (value, validation) => !Array.isArray(value) || test(value, validation);
}

function onNumbers(test: (value: number) => boolean, failure: string): Check {
  return (value, validation) => typeof value !== 'number' || test(value) || validation.fail(() => failure);
}

function onStrings(test: Test<string>, failure: string): Check {
  return (value, validation) =>
    typeof value !== 'string' || test(value, validation) || validation.fail(() => failure);
}

/** Tests of `type`. A number that is too large for JavaScript is one, and an integer. */
const typeTests: Readonly<Record<string, (value: unknown) => boolean>> = {
  array: (value) => Array.isArray(value),
  boolean: (value) => typeof value === 'boolean',
  integer: (value) => typeof value === 'number' && !(value % 1),
  null: (value) => value === null,
  number: (value) => typeof value === 'number',
  object: isJsonObject,
  string: (value) => typeof value === 'string',
};

function ofTypes(wanted: string | readonly string[]): Check {
  const tests = [wanted].flat().map((type) => typeTests[type] ?? (() => false));
  const failure = `must be ${wanted}`;
  const [only] = tests;
  if (tests.length === 1 && only !== undefined)
    return (value, validation) => only(value) || validation.fail(() => failure);
  return (value, validation) => tests.some((test) => test(value)) || validation.fail(() => failure);
}

function isComposed(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Lists and objects are compared by their texts: as often as a body repeats them, its values are walked once. */
function oneOfValues(values: readonly unknown[], failure: string): Check {
  const primitives = new Set(values.filter((value) => !isComposed(value)));
  const texts = new EqualityTexts();
  const composed = new Set(values.filter(isComposed).map((value) => texts.of(value)));
  if (composed.size === 0)
    return (value, validation) => primitives.has(value) || validation.fail(() => failure);
  return (value, validation) =>
    (isComposed(value) ? composed.has(validation.texts.of(value)) : primitives.has(value)) ||
    validation.fail(() => failure);
}

function atMost(count: number, things: string): string {
  return `must NOT have more than ${count} ${things}`;
}

function atLeast(count: number, things: string): string {
  return `must NOT have fewer than ${count} ${things}`;
}

function required(names: readonly string[]): Check {
  const tests = names.map((name): [string, (value: JsonObject) => boolean] => [name, memberTest(name)]);
  return onObjects((value, validation) => {
    let isValid = true;
    for (const [name, isIn] of tests) {
      if (isIn(value)) continue;
      isValid = validation.fail(() => `must have required property '${name}'`);
      if (!validation.isExhaustive) break;
    }
    return isValid;
  });
}

const uniqueItems = onArrays((items, validation) => {
  const duplicate = validation.numbers.duplicateIn(items);
  if (duplicate === undefined) return true;
  const [first, second] = duplicate;
  return validation.fail(
    () => `must NOT have duplicate items (items ## ${first} and ${second} are identical)`,
  );
});

/** Keywords whose value is a number. */
const limits: Readonly<Record<string, (limit: number) => Check>> = {
  maximum: (limit) => onNumbers((value) => value <= limit, `must be <= ${limit}`),
  minimum: (limit) => onNumbers((value) => value >= limit, `must be >= ${limit}`),
  exclusiveMaximum: (limit) => onNumbers((value) => value < limit, `must be < ${limit}`),
  exclusiveMinimum: (limit) => onNumbers((value) => value > limit, `must be > ${limit}`),
  multipleOf: (unit) => onNumbers((value) => Number.isInteger(value / unit), `must be multiple of ${unit}`),
  // A character has one or two units of UTF-16: most texts need not be counted.
  maxLength: (max) =>
    onStrings((text, run) => text.length <= max || run.lengthOf(text) <= max, atMost(max, 'characters')),
  minLength: (min) =>
    onStrings((text, run) => text.length >= min && run.lengthOf(text) >= min, atLeast(min, 'characters')),
  maxItems: (max) => onArrays(({ length }, run) => length <= max || run.fail(() => atMost(max, 'items'))),
  minItems: (min) => onArrays(({ length }, run) => length >= min || run.fail(() => atLeast(min, 'items'))),
  maxProperties: (max) =>
    onObjects((value, run) => run.namesOf(value).length <= max || run.fail(() => atMost(max, 'properties'))),
  minProperties: (min) =>
    onObjects((value, run) => run.namesOf(value).length >= min || run.fail(() => atLeast(min, 'properties'))),
};

/** Compiles the keywords without subschemas; the cheapest, which most bodies fail by, first. */
export function assertionsOf(schema: JsonObject, patterns: SchemaPatterns): Check[] {
  const checks: Check[] = [];
  const { type, const: constant, enum: values, pattern, required: names } = schema;
  if (type !== undefined) checks.push(ofTypes(type as string | string[]));
  if (Object.hasOwn(schema, 'const')) checks.push(oneOfValues([constant], 'must be equal to constant'));
  if (Array.isArray(values)) checks.push(oneOfValues(values, 'must be equal to one of the allowed values'));
  for (const [keyword, assertion] of Object.entries(limits)) {
    const value = schema[keyword];
    if (typeof value === 'number') checks.push(assertion(value));
  }
  if (typeof pattern === 'string') {
    const expression = patterns.get(pattern);
    checks.push(onStrings((text, run) => run.fits(text, expression), `must match pattern "${pattern}"`));
  }
  if (Array.isArray(names) && names.length > 0) checks.push(required(names));
  if (schema.uniqueItems === true) checks.push(uniqueItems);
  return checks;
}
