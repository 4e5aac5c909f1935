import { InvalidPattern, Pattern, patternStates } from './pattern.ts';
import type { JsonObject } from './payload.ts';
import { escapeToken, membersOf } from './schema-keywords.ts';
import { quoted } from './schema-references.ts';

/** Cost of compiling the patterns of a schema; equal ones count once. */
export interface PatternsSize {
  states: number;
  /** JSON Pointer to the largest, and its own states. */
  largest: string;
  largestStates: number;
}

/** Counts the states of all patterns of a schema without compiling any; also of one that is no valid schema. */
export function patternsSize(schema: JsonObject): PatternsSize {
  const size: PatternsSize = { states: 0, largest: '', largestStates: 0 };
  const counted = new Set<string>();
  for (const [pointer, source] of patternsIn(schema, '')) {
    if (counted.has(source)) continue;
    counted.add(source);
    const states = patternStates(source);
    size.states += states;
    if (states > size.largestStates) Object.assign(size, { largest: pointer, largestStates: states });
  }
  return size;
}

/** Says which pattern makes a schema too large; undefined if it is not. */
export function tooLargePatterns(schema: JsonObject, statesMax: number): string | undefined {
  const { states, largest, largestStates } = patternsSize(schema);
  if (states <= statesMax) return undefined;
  const most = largestStates === states ? '' : `, ${largestStates} of them by ${quoted(largest)}`;
  const what = largestStates === states ? quoted(largest) : 'its patterns';
  return `${what} may have ${states} states, more than ${statesMax} (schemaPatternStatesMax)${most}`;
}

/** The same of the text of a stored schema. */
export function tooLargeText(text: string, statesMax: number): string | undefined {
  // Most have no pattern; one could be written with an escape.
  if (!/pattern|\\u/.test(text)) return undefined;
  try {
    return tooLargePatterns(JSON.parse(text) as JsonObject, statesMax);
  } catch {
    // Damaged: it will be said not to compile.
    return undefined;
  }
}

/** The compiled patterns of one schema. */
export class SchemaPatterns {
  readonly #compiled = new Map<string, Pattern>();

  /** @throws Error naming the pattern that is invalid, or too large with the others. */
  constructor(schema: JsonObject, statesMax: number) {
    const tooLarge = tooLargePatterns(schema, statesMax);
    if (tooLarge !== undefined) throw new Error(tooLarge);
    for (const [pointer, source] of patternsIn(schema, '')) {
      if (!this.#compiled.has(source)) this.#compiled.set(source, compile(source, pointer));
    }
  }

  /** A pattern of the schema. */
  get(source: string): Pattern {
    const pattern = this.#compiled.get(source);
    if (pattern === undefined) throw new Error('this pattern is none of its schema');
    return pattern;
  }
}

function compile(source: string, pointer: string): Pattern {
  try {
    return new Pattern(source);
  } catch (error) {
    if (!(error instanceof InvalidPattern)) throw error;
    throw new Error(`${quoted(pointer)} is not usable: ${quoted(error.message)}`);
  }
}

/** All patterns, with their JSON Pointers. */
function* patternsIn(schema: JsonObject, pointer: string): Generator<[pointer: string, source: string]> {
  if (typeof schema.pattern === 'string') yield [`${pointer}/pattern`, schema.pattern];
  for (const name of Object.keys((schema.patternProperties ?? {}) as JsonObject))
    yield [`${pointer}/patternProperties/${escapeToken(name)}`, name];
  for (const [rest, member] of membersOf(schema)) {
    if (typeof member === 'object' && member !== null) yield* patternsIn(member, pointer + rest);
  }
}
