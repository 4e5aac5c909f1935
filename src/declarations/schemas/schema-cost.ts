import type { JsonObject } from './payload.ts';
import { escapeToken, type Subschema } from './schema-keywords.ts';
import type { SchemaPatterns } from './schema-patterns.ts';
import { quoted } from './schema-references.ts';

/** The reason for refusing a schema, as a sentence for its author. */
export class SchemaTooCostly extends Error {}

/**
 * Calibration: a string of 64 KiB takes a second with a pattern of 200 states, or with 65 strings of 1,000
 * characters.
 */
const stepsPerState = 5;
/** Text length that pattern steps are calibrated to: that of the largest body. */
const measuredLength = 65_536;
/** Numbering all values of a 64 KiB list takes up to 8 ms. */
const uniqueItemsSteps = 10;
/** Values compared or names looked up in the time of one step. */
const namesPerStep = 10;
/**
 * Factor for values in lists and under arbitrary names: a body can have thousands of them, but only one at each fixed
 * path.
 */
const repeatedFactor = 10;
/** Limit on the analysis itself, as a multiple of the steps allowed per value. */
const analysisFactor = 1_000;
/** Its limit where a device waits for it: some milliseconds. */
const exhaustiveWork = 5_000;

/** Upper bound of a schema's cost, and which value of a body costs it. */
export interface SchemaCost {
  steps: number;
  /** JSON Pointer to the value; `*` is any of its items or members. */
  path: string;
}

/** The subschemas applied to one value, and how often each. */
type Load = Map<Subschema, number>;

/** Cost of one subschema by itself. */
interface Cost {
  /** Constant cost. */
  base: number;
  /** Costs that grow with the value's length: names and items, and its pattern. */
  text: number;
  pattern: number;
  /** Cost of its pattern for one value if `maxLength` bounds the text. */
  shortText: number | undefined;
}

/**
 * The maximum steps for checking any one value of a body: the subschemas applied to it, on any path, weighted by
 * their cost. Nested `anyOf`, or a schema that refers to itself twice, could otherwise double the work at each level.
 * Multiplied by the number of values it bounds the time of a check: the worst case found within 1,000 steps and 64
 * KiB is a second. Patterns on short text are counted by that text if a body has only one such value, and their sum
 * is bounded likewise.
 * @throws SchemaTooCostly if it exceeds `stepsMax`, or cannot be determined.
 */
export function schemaCost(schema: JsonObject, patterns: SchemaPatterns, stepsMax: number): SchemaCost {
  const work = Math.min(stepsMax * analysisFactor, Number.MAX_SAFE_INTEGER);
  return new Analysis(schema, patterns, { stepsMax, work, respectsLengths: true }).most();
}

/** The same for validation that continues after a failed `maxLength`; infinite if they take long to determine. */
export function exhaustiveSteps(schema: JsonObject, patterns: SchemaPatterns): number {
  const bounds = { stepsMax: Number.MAX_SAFE_INTEGER, work: exhaustiveWork, respectsLengths: false };
  try {
    return new Analysis(schema, patterns, bounds).most().steps;
  } catch (error) {
    if (error instanceof SchemaTooCostly) return Number.POSITIVE_INFINITY;
    throw error;
  }
}

interface AnalysisBounds {
  stepsMax: number;
  /** Limit on the analysis itself. */
  work: number;
  /** True if a text beyond `maxLength` is not held against its pattern. */
  respectsLengths: boolean;
}

class Analysis {
  readonly #root: JsonObject;
  readonly #patterns: SchemaPatterns;
  readonly #stepsMax: number;
  readonly #respectsLengths: boolean;
  readonly #costs = new Map<JsonObject, Cost>();
  /** Numbers of subschemas, to recognize equal loads. */
  readonly #numbers = new Map<Subschema, number>();
  /** Loads done, with the steps of short texts from there on, and loads in progress. */
  readonly #done = new Map<string, number>();
  readonly #open = new Set<string>();
  #most = 0;
  #mostPath = '';
  #workLeft: number;

  constructor(root: JsonObject, patterns: SchemaPatterns, bounds: AnalysisBounds) {
    this.#root = root;
    this.#patterns = patterns;
    this.#stepsMax = bounds.stepsMax;
    this.#respectsLengths = bounds.respectsLengths;
    this.#workLeft = bounds.work;
  }

  most(): SchemaCost {
    const shortTexts = this.#follow(new Map([[this.#root, 1]]), '', false);
    return { steps: Math.ceil(this.#most + shortTexts), path: this.#mostPath };
  }

  /**
   * Visits each load once, or twice if it turns out to be repeated: from there on everything is as before. Returns
   * the steps of all short texts that a body can have there once.
   */
  #follow(load: Load, path: string, isRepeated: boolean): number {
    if (load.size === 0) return 0;
    this.#work(load.size);
    const names = [...load].map(([schema, times]) => `${this.#numberOf(schema)}*${times}`);
    const name = names.sort().join();
    const repeats = isRepeated || this.#open.has(name);
    const key = `${repeats}:${name}`;
    const known = this.#done.get(key);
    if (known !== undefined) return known;
    this.#done.set(key, 0);
    this.#open.add(name);
    const { applied, shortText } = this.#apply(load, path, repeats);
    const shortTexts =
      shortText + this.#followMembers(applied, path, repeats) + this.#followItems(applied, path);
    if (shortTexts > this.#stepsMax) throw this.#tooMany('its patterns may take', path);
    this.#open.delete(name);
    this.#done.set(key, shortTexts);
    return shortTexts;
  }

  #work(units: number): void {
    this.#workLeft -= units;
    if (this.#workLeft < 0)
      throw new SchemaTooCostly('it refers to itself in too many ways (schemaStepsMax)');
  }

  #tooMany(what: string, path: string): SchemaTooCostly {
    const place = path === '' ? '' : ` at ${quoted(path)}`;
    return new SchemaTooCostly(`${what} more than ${this.#stepsMax} steps (schemaStepsMax)${place}`);
  }

  #numberOf(schema: Subschema): number {
    const number = this.#numbers.get(schema) ?? this.#numbers.size;
    this.#numbers.set(schema, number);
    return number;
  }

  #costOf(schema: JsonObject): Cost {
    const cost = this.#costs.get(schema) ?? costOf(schema, this.#patterns, this.#respectsLengths);
    this.#costs.set(schema, cost);
    return cost;
  }

  /** Collects all subschemas applied to a value under this load, counting their steps. */
  #apply(load: Load, place: string, isRepeated: boolean): { applied: Load; shortText: number } {
    const applied: Load = new Map();
    const path = new Set<Subschema>();
    let steps = 0;
    let shortText = 0;
    const apply = (schema: Subschema, times: number): void => {
      if (typeof schema === 'boolean') return;
      if (path.has(schema)) throw new SchemaTooCostly('it refers to itself without going deeper');
      this.#work(1);
      const cost = this.#costOf(schema);
      // If repeated, there can be as many short texts as the body has space for.
      const isShort = cost.shortText !== undefined && !isRepeated;
      const text = cost.text + (isShort ? 0 : cost.pattern);
      steps += times * (cost.base * (isRepeated ? repeatedFactor : 1) + text);
      if (isShort) shortText += times * (cost.shortText ?? 0);
      if (steps > this.#stepsMax) throw this.#tooMany('checking one value may take', place);
      applied.set(schema, (applied.get(schema) ?? 0) + times);
      path.add(schema);
      for (const next of this.#inPlace(schema)) apply(next, times);
      path.delete(schema);
    };
    for (const [schema, times] of load) apply(schema, times);
    if (steps > this.#most) [this.#most, this.#mostPath] = [steps, place];
    return { applied, shortText };
  }

  /** Subschemas applied to the same value. */
  #inPlace(schema: JsonObject): Subschema[] {
    return [
      ...['allOf', 'anyOf', 'oneOf'].flatMap((keyword) => listOf(schema[keyword])),
      ...['not', 'if', 'then', 'else'].flatMap((keyword) => oneOf(schema[keyword])),
      ...Object.values(mapOf(schema.dependentSchemas)),
      ...this.#referredTo(schema),
    ];
  }

  /** Plain schemas have no references but `#` and `#/$defs/N`. */
  #referredTo({ $ref }: JsonObject): Subschema[] {
    if (typeof $ref !== 'string') return [];
    if ($ref === '#') return [this.#root];
    return oneOf(mapOf(this.#root.$defs)[$ref.slice('#/$defs/'.length)]);
  }

  #followMembers(applied: Load, path: string, isRepeated: boolean): number {
    const named = new Map<string, Load>();
    const others: Load = new Map();
    const names: Load = new Map();
    for (const [schema, times] of applied) {
      if (typeof schema === 'boolean') continue;
      const rest = ['additionalProperties', 'unevaluatedProperties'].flatMap((keyword) =>
        oneOf(schema[keyword]),
      );
      for (const [name, member] of Object.entries(mapOf(schema.properties))) {
        this.#work(1 + rest.length);
        const own = getOrMake(named, name);
        add(own, member, times);
        for (const other of rest) add(own, other, -times);
      }
      // Assumes that every pattern matches every name.
      for (const member of [...Object.values(mapOf(schema.patternProperties)), ...rest])
        add(others, member, times);
      for (const member of oneOf(schema.propertyNames)) add(names, member, times);
    }
    let shortTexts = 0;
    for (const [name, own] of named) {
      this.#work(others.size);
      shortTexts += this.#follow(sum(own, others), `${path}/${escapeToken(name)}`, isRepeated);
    }
    this.#follow(others, `${path}/*`, true);
    this.#follow(names, `${path}/*`, true);
    return shortTexts;
  }

  #followItems(applied: Load, path: string): number {
    const byIndex: Load[] = [];
    const others: Load = new Map();
    for (const [schema, times] of applied) {
      if (typeof schema === 'boolean') continue;
      const rest = ['items', 'unevaluatedItems'].flatMap((keyword) => oneOf(schema[keyword]));
      for (const [index, item] of listOf(schema.prefixItems).entries()) {
        byIndex[index] ??= new Map();
        add(byIndex[index], item, times);
        for (const other of rest) add(byIndex[index], other, -times);
      }
      for (const item of [...rest, ...oneOf(schema.contains)]) add(others, item, times);
    }
    for (const [index, own] of byIndex.entries()) {
      this.#work(others.size);
      this.#follow(sum(own, others), `${path}/${index}`, true);
    }
    this.#follow(others, `${path}/*`, true);
    return 0;
  }
}

function costOf(schema: JsonObject, patterns: SchemaPatterns, respectsLengths: boolean): Cost {
  const stepsOf = (source: string): number => patterns.get(source).states * stepsPerState;
  const listed = ['required', 'enum'].map((keyword) => listOf(schema[keyword]));
  const named = ['properties', 'dependentSchemas'].map((keyword) => Object.keys(mapOf(schema[keyword])));
  const names = [...listed, ...named].reduce((count, { length }) => count + length, 0);
  const base = 1 + Math.floor(names / namesPerStep);
  // Each name is tried twice if `additionalProperties` depends on it.
  const tries = schema.additionalProperties === undefined ? 1 : 2;
  const ofNames = Object.keys(mapOf(schema.patternProperties)).map((source) => tries * stepsOf(source));
  const ofItems = schema.uniqueItems === true ? uniqueItemsSteps : 0;
  const text = ofNames.reduce((sum, steps) => sum + steps, ofItems);
  const pattern = typeof schema.pattern === 'string' ? stepsOf(schema.pattern) : 0;
  // Text beyond `maxLength` is refused before its pattern is tried.
  const length = respectsLengths ? Number(schema.maxLength) : Number.NaN;
  const shortText = length < measuredLength ? (pattern * length) / measuredLength : undefined;
  return { base, text, pattern, shortText };
}

function getOrMake(loads: Map<string, Load>, name: string): Load {
  const load = loads.get(name) ?? new Map();
  loads.set(name, load);
  return load;
}

function add(load: Load, schema: Subschema, times: number): void {
  load.set(schema, (load.get(schema) ?? 0) + times);
}

function sum(a: Load, b: Load): Load {
  const both = new Map(a);
  for (const [schema, times] of b) add(both, schema, times);
  for (const [schema, times] of both) if (times <= 0) both.delete(schema);
  return both;
}

/** The meta-schema guarantees the right type. */
function listOf(value: unknown): Subschema[] {
  return Array.isArray(value) ? value : [];
}

function mapOf(value: unknown): Record<string, Subschema> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, Subschema>)
    : {};
}

function oneOf(value: unknown): Subschema[] {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? [value as JsonObject] : [];
}
