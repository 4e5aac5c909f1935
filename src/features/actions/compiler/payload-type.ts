import type { JsonObject } from '../../../declarations/schemas/payload.ts';

/** Nesting and size beyond which a type is `any`: a schema is the operator's, and may be large. */
const depthMax = 16;
const textMax = 65_536;
const literalsMax = 200;
const anything = 'any';

/**
 * The TypeScript type of what one of some JSON Schemas accepts, as far as it is plain to say; `any` for the rest. Without
 * a schema that of every payload.
 */
export function payloadType(schemas: readonly string[]): string {
  if (schemas.length === 0) return 'JsonObject';
  return schemas
    .map((text) => typeOf(JSON.parse(text), 0))
    .map((type) => `(${type.length > textMax ? anything : type})`)
    .join(' | ');
}

function typeOf(schema: unknown, depth: number): string {
  if (schema === false) return 'never';
  if (depth > depthMax || !isObject(schema) || '$ref' in schema || '$dynamicRef' in schema) return anything;
  const { const: constant, enum: choices, anyOf, oneOf, allOf, type } = schema;
  if (constant !== undefined) return literal(constant);
  if (Array.isArray(choices)) return choices.length > literalsMax ? anything : union(choices.map(literal));
  const parts = [
    ...(Array.isArray(type) ? [union(type.map((one) => typeNamed(one, schema, depth)))] : []),
    ...(typeof type === 'string' ? [typeNamed(type, schema, depth)] : []),
    ...(type === undefined && isObject(schema.properties) ? [objectType(schema, depth)] : []),
    ...[anyOf, oneOf].filter(Array.isArray).map((some) => union(some.map((one) => typeOf(one, depth + 1)))),
    ...(Array.isArray(allOf) ? allOf.map((one) => typeOf(one, depth + 1)) : []),
  ].filter((part) => part !== anything);
  return parts.length === 0 ? anything : parts.map((part) => `(${part})`).join(' & ');
}

function typeNamed(name: unknown, schema: JsonObject, depth: number): string {
  switch (name) {
    case 'string':
    case 'boolean':
    case 'null':
    case 'number':
      return name;
    case 'integer':
      return 'number';
    case 'array':
      return `readonly (${'prefixItems' in schema ? anything : typeOf(schema.items, depth + 1)})[]`;
    case 'object':
      return objectType(schema, depth);
    default:
      return anything;
  }
}

/** An object that may have other members lets code read them, as `any`. */
function objectType(schema: JsonObject, depth: number): string {
  const { properties, required, additionalProperties, patternProperties } = schema;
  const named = new Set(Array.isArray(required) ? required : []);
  const members = Object.entries(isObject(properties) ? properties : {}).map(
    ([name, value]) =>
      `readonly ${JSON.stringify(name)}${named.has(name) ? '' : '?'}: ${typeOf(value, depth + 1)};`,
  );
  if (additionalProperties !== false || patternProperties !== undefined) {
    members.push(`readonly [member: string]: ${anything};`);
  }
  return `{ ${members.join(' ')} }`;
}

function literal(value: unknown): string {
  return value !== null && typeof value === 'object' ? anything : JSON.stringify(value);
}

function union(types: readonly string[]): string {
  return types.length === 0 || types.includes(anything)
    ? anything
    : types.map((type) => `(${type})`).join(' | ');
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
