import type { JsonObject } from './payload.ts';

/** A subschema: an object, or true or false. */
export type Subschema = JsonObject | boolean;

/** Kinds of keyword values: subschemas, validation, identifiers and references, or annotations. */
type Form = 'schema' | 'list' | 'map' | 'check' | 'address' | 'annotation';

const forms: Readonly<Record<Form, readonly string[]>> = {
  schema: [
    ...['items', 'contains', 'additionalProperties', 'propertyNames', 'unevaluatedItems'],
    ...['unevaluatedProperties', 'not', 'if', 'then', 'else', 'contentSchema'],
  ],
  list: ['prefixItems', 'allOf', 'anyOf', 'oneOf'],
  // `definitions` is reserved in 2020-12 for this former name, which generators still use.
  map: ['$defs', 'definitions', 'properties', 'patternProperties', 'dependentSchemas'],
  check: [
    ...['type', 'enum', 'const', 'pattern', 'minLength', 'maxLength', 'minimum', 'maximum', 'multipleOf'],
    ...['exclusiveMinimum', 'exclusiveMaximum', 'required', 'dependentRequired', 'minProperties'],
    ...['maxProperties', 'minItems', 'maxItems', 'minContains', 'maxContains', 'uniqueItems'],
  ],
  address: ['$id', '$anchor', '$dynamicAnchor', '$ref', '$dynamicRef'],
  annotation: [
    ...['$schema', '$vocabulary', '$comment', 'title', 'description', 'default', 'deprecated', 'examples'],
    ...['readOnly', 'writeOnly', 'format', 'contentEncoding', 'contentMediaType'],
  ],
};
/** Exactly the keywords of JSON Schema 2020-12. */
const formOf: ReadonlyMap<string, Form> = new Map(
  Object.entries(forms).flatMap(([form, keywords]) => keywords.map((keyword) => [keyword, form as Form])),
);
/** Custom annotations: ignored by validation. */
const extensionPrefix = 'x-';

/** Undefined for unknown keywords. */
export function formOfKeyword(keyword: string): Form | undefined {
  return formOf.get(keyword) ?? (keyword.startsWith(extensionPrefix) ? 'annotation' : undefined);
}

/** Direct subschemas, each with the rest of its JSON Pointer (RFC 6901). */
export function* membersOf(schema: JsonObject): Generator<[pointer: string, member: Subschema]> {
  for (const [keyword, value] of Object.entries(schema)) {
    const form = formOfKeyword(keyword);
    if (form === 'schema') yield [`/${keyword}`, value as Subschema];
    else if (form === 'list' || form === 'map') {
      for (const [name, member] of Object.entries(value as Record<string, Subschema>))
        yield [`/${keyword}/${escapeToken(name)}`, member];
    }
  }
}

export function escapeToken(token: string): string {
  return token.replaceAll('~', '~0').replaceAll('/', '~1');
}
