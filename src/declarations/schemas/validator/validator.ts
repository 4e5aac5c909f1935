import type { JsonObject } from '../payload.ts';
import type { Subschema } from '../schema-keywords.ts';
import type { SchemaPatterns } from '../schema-patterns.ts';
import { assertionsOf, isJsonObject } from './assertions.ts';
import {
  type Fitting,
  otherMembers,
  patternProperties,
  properties,
  propertyNames,
} from './member-keywords.ts';
import { SchemaOperations } from './schema-operations.ts';
import {
  allOf,
  type Check,
  Evaluated,
  type Mismatch,
  passes,
  type Thoroughness,
  Validation,
} from './validation.ts';

/** Those of noting that one member or item was looked at. */
const evaluationOperations = 5;
/** Those of going on to the next member or item. */
const nextOperations = 2;

/**
 * A plain schema of JSON Schema 2020-12, with `format` as an annotation (D12), as functions that call each other: made
 * in a microsecond or two for each keyword. To generate code for them takes half a millisecond.
 */
export class Validator {
  readonly #plain: JsonObject;
  readonly #patterns: SchemaPatterns;
  readonly #root: Check;
  readonly #operations = new SchemaOperations();
  /** Checks of `#` and `#/$defs/N`, made when they are first referred to. */
  readonly #definitions = new Map<string, { check: Check }>();
  /** Those that are still to be made: one by one, since they may refer to each other in a long chain. */
  readonly #pending: (() => void)[] = [];

  constructor(plain: JsonObject, patterns: SchemaPatterns) {
    this.#plain = plain;
    this.#patterns = patterns;
    // Applied once: not counted, unless it refers to itself.
    this.#root = this.#compileKeywords(plain);
    for (let make = this.#pending.pop(); make !== undefined; make = this.#pending.pop()) make();
  }

  /**
   * Undefined if the value matches; else its first error, or some of all if that is asked for.
   * @throws TooManyOperations
   */
  errorsOf(
    value: unknown,
    operationsMax: number,
    reported: () => Exclude<Thoroughness, 'none'>,
  ): Mismatch | undefined {
    const attempt = new Validation(value, 'none', operationsMax);
    if (this.#root(value, attempt, undefined)) return undefined;
    const report = new Validation(value, reported(), attempt.operationsLeft);
    this.#root(value, report, undefined);
    return report.mismatch;
  }

  #compile(schema: Subschema): Check {
    return typeof schema === 'boolean'
      ? this.#compileKeywords(schema)
      : counted(this.#operations.whereApplied(schema), this.#compileKeywords(schema));
  }

  #compileKeywords(schema: Subschema): Check {
    if (schema === true) return passes;
    if (schema === false) return (_value, validation) => validation.fail(() => 'boolean schema is false');
    const check = allOf([
      ...assertionsOf(schema, this.#patterns),
      ...this.#ofItems(schema),
      ...this.#ofMembers(schema),
      ...this.#inPlace(schema),
    ]);
    const rest = this.#unevaluated(schema);
    if (rest.length === 0) return check;
    const whole = allOf([check, ...rest]);
    // `true` is only for a schema around this one to see.
    const { unevaluatedItems = true, unevaluatedProperties = true } = schema;
    const isForOthers = unevaluatedItems === true && unevaluatedProperties === true;
    return (value, validation, evaluated) => {
      if (isForOthers && evaluated === undefined) return check(value, validation, undefined);
      const own = new Evaluated();
      const isValid = whole(value, validation, own);
      validation.spend(evaluationOperations * (1 + own.size));
      if (isValid) evaluated?.add(own);
      return isValid;
    };
  }

  /** Checks of the subschemas under a keyword: of one, of a list. */
  #one(schema: JsonObject, keyword: string): Check | undefined {
    return Object.hasOwn(schema, keyword) ? this.#compile(schema[keyword] as Subschema) : undefined;
  }

  /** Operations of each member or item that is held against the subschema under a keyword. */
  #eachOf(schema: JsonObject, keyword: string): number {
    return nextOperations + this.#operations.of(schema[keyword] as Subschema);
  }

  #list(schema: JsonObject, keyword: string): Check[] {
    return ((schema[keyword] ?? []) as Subschema[]).map((one) => this.#compile(one));
  }

  #map(schema: JsonObject, keyword: string): [name: string, check: Check, operations: number][] {
    const members = Object.entries((schema[keyword] ?? {}) as Record<string, Subschema>);
    return members.map(([name, member]) => [name, this.#compile(member), this.#operations.of(member)]);
  }

  #referred(reference: string): Check {
    const known = this.#definitions.get(reference);
    const definition = known ?? { check: passes };
    if (known === undefined) {
      this.#definitions.set(reference, definition);
      const definitions = (this.#plain.$defs ?? {}) as Record<string, Subschema>;
      const target =
        reference === '#' ? this.#plain : (definitions[reference.slice('#/$defs/'.length)] ?? false);
      this.#pending.push(() => {
        // Counts, however light: one may lead to the next in a long chain.
        definition.check = counted(this.#operations.of(target), this.#compile(target));
      });
    }
    return (value, validation, evaluated) => definition.check(value, validation, evaluated);
  }

  /** Keywords that apply subschemas to the same value. */
  #inPlace(schema: JsonObject): Check[] {
    const checks: Check[] = [];
    if (typeof schema.$ref === 'string') checks.push(this.#referred(schema.$ref));
    const not = this.#one(schema, 'not');
    if (not !== undefined) checks.push(noneOf(not));
    const any = this.#list(schema, 'anyOf');
    if (any.length > 0) checks.push(anyOf(any));
    const one = this.#list(schema, 'oneOf');
    if (one.length > 0) checks.push(oneOf(one));
    const all = this.#list(schema, 'allOf');
    if (all.length > 0) checks.push(allOf(all));
    const condition = this.#one(schema, 'if');
    if (condition !== undefined)
      checks.push(conditional(condition, this.#one(schema, 'then'), this.#one(schema, 'else')));
    for (const [name, check] of this.#map(schema, 'dependentSchemas')) {
      checks.push(
        (value, validation, evaluated) =>
          !isJsonObject(value) || !Object.hasOwn(value, name) || check(value, validation, evaluated),
      );
    }
    return checks;
  }

  #ofMembers(schema: JsonObject): Check[] {
    const checks: Check[] = [];
    const ofNames = this.#one(schema, 'propertyNames');
    if (ofNames !== undefined && ofNames !== passes)
      checks.push(propertyNames(ofNames, this.#eachOf(schema, 'propertyNames')));
    const named = this.#map(schema, 'properties');
    if (named.length > 0) checks.push(properties(named));
    const fitting = this.#map(schema, 'patternProperties').map(([source, check, operations]): Fitting => {
      const pattern = this.#patterns.get(source);
      const fits = (name: string, validation: Validation) => validation.fits(name, pattern);
      return { fits, check, operations };
    });
    if (fitting.length > 0) checks.push(patternProperties(fitting));
    const others = this.#one(schema, 'additionalProperties');
    if (others === undefined) return checks;
    const names = new Set(named.map(([name]) => name));
    const isOther = (name: string, validation: Validation) =>
      !names.has(name) && (fitting.length === 0 || !fitting.some(({ fits }) => fits(name, validation)));
    const failure = schema.additionalProperties === false ? 'must NOT have additional properties' : undefined;
    checks.push(otherMembers(isOther, others, this.#eachOf(schema, 'additionalProperties'), failure));
    return checks;
  }

  #ofItems(schema: JsonObject): Check[] {
    const checks: Check[] = [];
    const first = this.#list(schema, 'prefixItems');
    if (first.length > 0) checks.push(prefixItems(first));
    const others = this.#one(schema, 'items');
    if (others !== undefined) {
      const failure = schema.items === false ? `must NOT have more than ${first.length} items` : undefined;
      checks.push(
        otherItems((index) => index >= first.length, others, this.#eachOf(schema, 'items'), failure),
      );
    }
    const contained = this.#one(schema, 'contains');
    const { minContains: min = 1, maxContains: max = Number.POSITIVE_INFINITY } = schema;
    if (contained !== undefined)
      checks.push(contains(contained, this.#eachOf(schema, 'contains'), Number(min), Number(max)));
    return checks;
  }

  /** Checks of what nothing beside them has evaluated. */
  #unevaluated(schema: JsonObject): Check[] {
    const checks: Check[] = [];
    const items = this.#one(schema, 'unevaluatedItems');
    if (items !== undefined) {
      const failure = schema.unevaluatedItems === false ? 'must NOT have unevaluated items' : undefined;
      checks.push(
        otherItems(
          (index, evaluated) => !evaluated?.hasItem(index),
          items,
          this.#eachOf(schema, 'unevaluatedItems'),
          failure,
        ),
      );
    }
    const members = this.#one(schema, 'unevaluatedProperties');
    if (members !== undefined) {
      const failure =
        schema.unevaluatedProperties === false ? 'must NOT have unevaluated properties' : undefined;
      checks.push(
        otherMembers(
          (name, _validation, evaluated) => !evaluated?.hasMember(name),
          members,
          this.#eachOf(schema, 'unevaluatedProperties'),
          failure,
        ),
      );
    }
    return checks;
  }
}

function counted(operations: number, check: Check): Check {
  if (operations === 0) return check;
  return (value, validation, evaluated) => {
    validation.spend(operations);
    return check(value, validation, evaluated);
  };
}

/** Checks an alternative: what it evaluates counts only if it fits. */
function attempt(
  check: Check,
  value: unknown,
  validation: Validation,
  evaluated: Evaluated | undefined,
): boolean {
  if (evaluated === undefined) return check(value, validation, undefined);
  const own = new Evaluated();
  const isValid = check(value, validation, own);
  validation.spend(evaluationOperations * (1 + own.size));
  if (isValid) evaluated.add(own);
  return isValid;
}

function noneOf(check: Check): Check {
  return (value, validation) => {
    const { length } = validation.failures;
    const isValid = check(value, validation, undefined);
    validation.forget(length);
    return !isValid || validation.fail(() => 'must NOT be valid');
  };
}

function anyOf(checks: readonly Check[]): Check {
  return (value, validation, evaluated) => {
    const { length } = validation.failures;
    let isValid = false;
    for (const check of checks) {
      isValid = attempt(check, value, validation, evaluated) || isValid;
      // The others may evaluate more.
      if (isValid && evaluated === undefined) break;
    }
    if (!isValid) return validation.fail(() => 'must match a schema in anyOf');
    validation.forget(length);
    return true;
  };
}

function oneOf(checks: readonly Check[]): Check {
  return (value, validation, evaluated) => {
    const { length } = validation.failures;
    let valid = 0;
    for (const check of checks) {
      if (attempt(check, value, validation, evaluated)) valid += 1;
      if (valid > 1) break;
    }
    if (valid !== 1) return validation.fail(() => 'must match exactly one schema in oneOf');
    validation.forget(length);
    return true;
  };
}

function conditional(condition: Check, then: Check = passes, otherwise: Check = passes): Check {
  return (value, validation, evaluated) => {
    const { length } = validation.failures;
    const isThen = attempt(condition, value, validation, evaluated);
    validation.forget(length);
    const [branch, name] = isThen ? [then, 'then'] : [otherwise, 'else'];
    return branch(value, validation, evaluated) || validation.fail(() => `must match "${name}" schema`);
  };
}

function prefixItems(checks: readonly Check[]): Check {
  return (value, validation, evaluated) => {
    if (!Array.isArray(value)) return true;
    if (evaluated !== undefined) evaluated.items = Math.max(evaluated.items, checks.length);
    let isValid = true;
    for (const [index, check] of checks.entries()) {
      if (index >= value.length) break;
      if (validation.within(index, check, value[index])) continue;
      if (!validation.isExhaustive) return false;
      isValid = false;
    }
    return isValid;
  };
}

/** Items that no keyword beside this one is about. `failure` says that there must be none. */
function otherItems(
  isOther: (index: number, evaluated: Evaluated | undefined) => boolean,
  check: Check,
  operations: number,
  failure: string | undefined,
): Check {
  return (value, validation, evaluated) => {
    if (!Array.isArray(value)) return true;
    let isValid = true;
    // Counts the index, as an iterator over thousands of items takes as long as their check.
    for (let index = 0; check !== passes && index < value.length; index += 1) {
      validation.spend(operations);
      if (!isOther(index, evaluated)) continue;
      if (failure !== undefined) return validation.fail(() => failure);
      if (validation.within(index, check, value[index])) continue;
      if (!validation.isExhaustive) return false;
      isValid = false;
    }
    if (evaluated !== undefined) evaluated.items = Math.max(evaluated.items, value.length);
    return isValid;
  };
}

function contains(check: Check, operations: number, min: number, max: number): Check {
  const failure = Number.isFinite(max)
    ? `must contain at least ${min} and no more than ${max} valid item(s)`
    : `must contain at least ${min} valid item(s)`;
  return (value, validation, evaluated) => {
    if (!Array.isArray(value)) return true;
    const { length } = validation.failures;
    let valid = 0;
    for (const [index, item] of value.entries()) {
      validation.spend(operations);
      if (!validation.within(index, check, item)) continue;
      valid += 1;
      evaluated?.indexes.add(index);
      if (valid > max || (valid >= min && !Number.isFinite(max) && evaluated === undefined)) break;
    }
    if (valid < min || valid > max) return validation.fail(() => failure);
    validation.forget(length);
    return true;
  };
}
