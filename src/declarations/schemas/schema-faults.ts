import type { ErrorObject } from 'ajv/dist/2020.js';
import { InvalidPattern, Pattern } from './pattern.ts';
import type { JsonObject } from './payload.ts';
import { escapeToken, membersOf } from './schema-keywords.ts';
import { quoted } from './schema-references.ts';

/** Says why a schema does not match its meta-schema. */
export function metaSchemaFault(errors: readonly ErrorObject[] | null | undefined): string {
  // Only `type` has fixed values; the errors around it name alternatives that lead nowhere.
  const ofType = errors?.findLast(({ keyword }) => keyword === 'enum');
  const error = ofType ?? errors?.[0];
  const where = error?.instancePath ? quoted(error.instancePath) : 'the schema';
  if (ofType === undefined) return `${where} ${error?.message?.replaceAll(',', ' or ') ?? 'is not valid'}`;
  const { allowedValues } = ofType.params as { allowedValues: readonly string[] };
  const orList = where.endsWith('/type') ? ', or a list of them' : '';
  return `${where} must be one of ${allowedValues.join(', ')}${orList}`;
}

/** Says why a schema that matches its meta-schema is refused; `error` is the first that its analysis met. */
export function schemaFault(error: Error, schema: JsonObject): string {
  if (!(error instanceof InvalidPattern)) return error.message;
  return `${quoted(invalidPatternPath(schema, '') ?? 'a pattern')} is not usable: ${quoted(error.message)}`;
}

function invalidPatternPath(schema: JsonObject, pointer: string): string | undefined {
  if (typeof schema.pattern === 'string' && !isUsable(schema.pattern)) return `${pointer}/pattern`;
  const names = Object.keys((schema.patternProperties ?? {}) as JsonObject);
  const name = names.find((one) => !isUsable(one));
  if (name !== undefined) return `${pointer}/patternProperties/${escapeToken(name)}`;
  for (const [rest, member] of membersOf(schema)) {
    const path = typeof member === 'boolean' ? undefined : invalidPatternPath(member, pointer + rest);
    if (path !== undefined) return path;
  }
  return undefined;
}

function isUsable(source: string): boolean {
  try {
    new Pattern(source);
    return true;
  } catch {
    return false;
  }
}
