import { Pattern } from './pattern.ts';
import type { JsonObject } from './payload.ts';
import { SchemaReferences } from './schema-references.ts';

/** A subschema: an object, or true or false. */
type Subschema = JsonObject | boolean;

/** Why a schema is refused, as a sentence for whoever put it. */
export class SchemaTooCostly extends Error {}

/** A string of 64 KiB takes a pattern of 200 states almost two seconds; short ones hardly anything. */
const stepsPerState = 5;
const shortPatternSteps = 10;
const shortLengthMax = 1_000;
/** Values compared or names looked up in the time of one subschema. */
const namesPerStep = 10;
/** With `uniqueItems` every item may be compared with every other. */
const uniqueItemsMax = 1_000;
/** A body has one value at the end of each path of names, but thousands in lists and under names of its own. */
const repeatedFactor = 10;
/** Work of the analysis itself, as a multiple of the steps that one value may take. */
const analysisFactor = 1_000;

/** The subschemas that one value is held against, and how often each. */
type Load = Map<Subschema, number>;

/**
 * The most steps that checking any one value of a body takes: subschemas it is held against, however it is
 * reached, weighed by what they do. `anyOf` in `anyOf`, or a schema that refers to itself twice, would else
 * double the work at each level. Multiplied by the values of a body it bounds the time of a check: the worst
 * that was found within 1,000 steps and 64 KiB is a second.
 * @throws SchemaTooCostly where that is more than `stepsMax`, or cannot be told.
 */
export function schemaSteps(schema: JsonObject, stepsMax: number): number {
  return new Analysis(schema, stepsMax).most();
}

class Analysis {
  readonly #root: JsonObject;
  readonly #stepsMax: number;
  readonly #references: SchemaReferences;
  /** Numbers of subschemas, to know a load again. */
  readonly #numbers = new Map<Subschema, number>();
  /** Loads that were followed, and those whose members are being followed. */
  readonly #done = new Set<string>();
  readonly #open = new Set<string>();
  #most = 0;
  #workLeft: number;

  constructor(root: JsonObject, stepsMax: number) {
    this.#root = root;
    this.#stepsMax = stepsMax;
    this.#references = new SchemaReferences(root);
    this.#workLeft = stepsMax * analysisFactor;
  }

  most(): number {
    this.#follow(new Map([[this.#root, 1]]), false);
    return this.#most;
  }

  /** Each load is followed once, or twice where it is found to be repeated: from there on all is as before. */
  #follow(load: Load, isRepeated: boolean): void {
    const names = [...load].map(([schema, times]) => `${this.#numberOf(schema)}*${times}`);
    const name = names.sort().join();
    const repeats = isRepeated || this.#open.has(name);
    const key = `${repeats}:${name}`;
    if (load.size === 0 || this.#done.has(key)) return;
    this.#done.add(key);
    this.#open.add(name);
    const applied = this.#apply(load, repeats);
    this.#followMembers(applied, repeats);
    this.#followItems(applied);
    this.#open.delete(name);
  }

  #numberOf(schema: Subschema): number {
    const number = this.#numbers.get(schema) ?? this.#numbers.size;
    this.#numbers.set(schema, number);
    return number;
  }

  /** All subschemas that a value under this load is held against, counting their steps. */
  #apply(load: Load, isRepeated: boolean): Load {
    const applied: Load = new Map();
    let steps = 0;
    const apply = (schema: Subschema, times: number, path: ReadonlySet<Subschema>): void => {
      if (typeof schema === 'boolean') return;
      if (path.has(schema)) throw new SchemaTooCostly('it refers to itself without going deeper');
      steps += times * (looks(schema) * (isRepeated ? repeatedFactor : 1) + patternSteps(schema));
      this.#workLeft -= 1;
      if (steps > this.#stepsMax) {
        throw new SchemaTooCostly(
          `checking one value may take more than ${this.#stepsMax} steps (schemaStepsMax)`,
        );
      }
      if (this.#workLeft < 0)
        throw new SchemaTooCostly('it refers to itself in too many ways (schemaStepsMax)');
      applied.set(schema, (applied.get(schema) ?? 0) + times);
      const inPlace = this.#inPlace(schema);
      if (inPlace.length === 0) return;
      const deeper = new Set(path).add(schema);
      for (const next of inPlace) apply(next, times, deeper);
    };
    for (const [schema, times] of load) apply(schema, times, new Set());
    this.#most = Math.max(this.#most, steps);
    return applied;
  }

  /** Subschemas that are applied to the same value. */
  #inPlace(schema: JsonObject): Subschema[] {
    return [
      ...['allOf', 'anyOf', 'oneOf'].flatMap((keyword) => listOf(schema[keyword])),
      ...['not', 'if', 'then', 'else'].flatMap((keyword) => oneOf(schema[keyword])),
      ...Object.values(mapOf(schema.dependentSchemas)),
      ...Object.values(mapOf(schema.dependencies)).flatMap(oneOf),
      ...this.#references.targets(schema),
    ];
  }

  #followMembers(applied: Load, isRepeated: boolean): void {
    const named = new Map<string, Load>();
    const others: Load = new Map();
    const names: Load = new Map();
    for (const [schema, times] of applied) {
      if (typeof schema === 'boolean') continue;
      const rest = ['additionalProperties', 'unevaluatedProperties'].flatMap((keyword) =>
        oneOf(schema[keyword]),
      );
      for (const [name, member] of Object.entries(mapOf(schema.properties))) {
        const own = getOrMake(named, name);
        add(own, member, times);
        for (const other of rest) add(own, other, -times);
      }
      // As if every pattern fitted every name.
      for (const member of [...Object.values(mapOf(schema.patternProperties)), ...rest])
        add(others, member, times);
      for (const member of oneOf(schema.propertyNames)) add(names, member, times);
    }
    for (const own of named.values()) this.#follow(sum(own, others), isRepeated);
    this.#follow(others, true);
    this.#follow(names, true);
  }

  #followItems(applied: Load): void {
    const places: Load[] = [];
    const others: Load = new Map();
    for (const [schema, times] of applied) {
      if (typeof schema === 'boolean') continue;
      const rest = ['items', 'unevaluatedItems'].flatMap((keyword) => oneOf(schema[keyword]));
      for (const [index, item] of listOf(schema.prefixItems).entries()) {
        places[index] ??= new Map();
        add(places[index], item, times);
        for (const other of rest) add(places[index], other, -times);
      }
      for (const item of [...rest, ...oneOf(schema.contains)]) add(others, item, times);
    }
    for (const own of places) this.#follow(sum(own, others), true);
    this.#follow(others, true);
  }
}

/** Of one subschema by itself, but for patterns. @throws SchemaTooCostly for `uniqueItems` without a bound. */
function looks(schema: JsonObject): number {
  if (schema.uniqueItems === true && !(Number(schema.maxItems) <= uniqueItemsMax)) {
    throw new SchemaTooCostly(`uniqueItems needs a maxItems of at most ${uniqueItemsMax} beside it`);
  }
  const names =
    ['properties', 'dependentRequired', 'dependentSchemas', 'dependencies'].reduce(
      (count, keyword) => count + Object.values(mapOf(schema[keyword])).flat().length,
      0,
    ) + ['required', 'enum'].reduce((count, keyword) => count + listOf(schema[keyword]).length, 0);
  return 1 + Math.floor(names / namesPerStep);
}

/** Of one subschema's patterns: what they cost depends on the length of the text, not on how many there are. */
function patternSteps(schema: JsonObject): number {
  const steps = (source: string): number => new Pattern(source).states * stepsPerState;
  const ofNames = Object.keys(mapOf(schema.patternProperties)).reduce(
    (sum, source) => sum + steps(source),
    0,
  );
  if (typeof schema.pattern !== 'string') return ofNames;
  // What is too long is refused before its pattern is tried.
  const isShort = Number(schema.maxLength) <= shortLengthMax;
  return ofNames + (isShort ? shortPatternSteps : steps(schema.pattern));
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

/** The meta-schema has seen to it that what is there has the right form. */
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
