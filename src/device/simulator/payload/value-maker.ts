import { numberMaker } from './number-maker.ts';
import { type Maker, refused, type SchemaObject, type SchemaRoot } from './schema-root.ts';
import { stringMaker } from './string-maker.ts';

const depthMax = 24;
/** More of a list or an object than its schema asks for. */
const extraMax = 3;
const optionalShare = 0.8;

/** Keywords that bind a value in ways which nothing can be made for without trial. */
const unmakeable = [
  'allOf',
  'oneOf',
  'not',
  'if',
  'pattern',
  'contains',
  'dependentRequired',
  'dependentSchemas',
  'propertyNames',
  'unevaluatedProperties',
  'unevaluatedItems',
  '$dynamicRef',
];

/** Returns what makes values of a schema, which is at a path of its root. @throws OperatorError */
export function maker(root: SchemaRoot, schema: unknown, path: string, depth: number): Maker {
  if (depth > depthMax) throw refused(root, path, 'is nested too deep, or within itself');
  if (schema === true) return () => 1;
  if (typeof schema !== 'object' || schema === null) throw refused(root, path, 'allows no value');
  const one = schema as SchemaObject;
  if ('const' in one) return () => one.const;
  const keyword = unmakeable.find((word) => one[word] !== undefined);
  const choices = one.enum ?? (keyword !== undefined || one.type === 'string' ? one.examples : undefined);
  if (Array.isArray(choices) && choices.length > 0)
    return (noise) => choices[Math.floor(noise.next() * choices.length)];
  if (typeof one.$ref === 'string') return maker(root, resolve(root, one.$ref, path), path, depth + 1);
  if (Array.isArray(one.anyOf)) return anyMaker(root, one, path, depth);
  if (keyword !== undefined) throw refused(root, path, `has "${keyword}"`);
  return typedMaker(root, one, path, depth);
}

/** Takes any branch, which may say nothing of what the schema around it says. */
function anyMaker(root: SchemaRoot, schema: SchemaObject, path: string, depth: number): Maker {
  const { anyOf, ...rest } = schema;
  const makers = (anyOf as unknown[]).map((branch, index) => {
    const both = Object.keys(branch as object).find((word) => word in rest);
    if (both !== undefined) throw refused(root, path, `has "${both}" in and around its "anyOf"`);
    return maker(root, { ...rest, ...(branch as object) }, `${path}/anyOf/${index}`, depth + 1);
  });
  return (noise) => makers[Math.floor(noise.next() * makers.length)]?.(noise);
}

function typedMaker(root: SchemaRoot, schema: SchemaObject, path: string, depth: number): Maker {
  const types = [schema.type].flat().filter((type) => type !== undefined);
  const [type = impliedType(schema)] = types.filter((one) => one !== 'null');
  if (type === 'object') return objectMaker(root, schema, path, depth);
  if (type === 'array') return arrayMaker(root, schema, path, depth);
  if (type === 'string') return stringMaker(root, schema, path);
  if (type === 'boolean') return (noise) => noise.next() < 0.5;
  if (type === 'null') return () => null;
  return numberMaker(root, schema, path, type === 'integer');
}

function impliedType(schema: SchemaObject): string | undefined {
  if ([schema.type].flat().includes('null')) return 'null';
  if (schema.properties !== undefined || schema.required !== undefined) return 'object';
  if (schema.items !== undefined || schema.prefixItems !== undefined) return 'array';
  if (schema.maxLength !== undefined || schema.minLength !== undefined || schema.format !== undefined)
    return 'string';
  return 'number';
}

function objectMaker(root: SchemaRoot, schema: SchemaObject, path: string, depth: number): Maker {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, unknown>);
  const required = new Set((schema.required ?? []) as string[]);
  const missing = [...required].filter((name) => !properties.some(([own]) => own === name));
  if (missing.length > 0 && schema.additionalProperties === false)
    throw refused(root, path, `requires ${missing[0]} and forbids it`);
  const open = missing.map((name): [string, unknown] => [name, schema.additionalProperties ?? true]);
  const least = Number(schema.minProperties ?? 0);
  const most = Number(schema.maxProperties ?? Number.POSITIVE_INFINITY);
  const makers = [...properties, ...open].flatMap(([name, own]) => {
    const isNeeded = required.has(name);
    // Optional properties are left out at depth, so that a schema that contains itself ends.
    if (!isNeeded && depth > depthMax / 2) return [];
    return [{ name, isNeeded, make: maker(root, own, `${path}/${name}`, depth + 1) }];
  });
  if (makers.length < least) throw refused(root, path, 'wants more properties than it names');
  makers.sort((a, b) => Number(b.isNeeded) - Number(a.isNeeded));
  return (noise) => {
    const made: [string, unknown][] = [];
    for (const [index, { name, isNeeded, make }] of makers.entries()) {
      const isFilled = isNeeded || index < least || noise.next() < optionalShare;
      if (isFilled && made.length < most) made.push([name, make(noise)]);
    }
    return Object.fromEntries(made);
  };
}

function arrayMaker(root: SchemaRoot, schema: SchemaObject, path: string, depth: number): Maker {
  if (schema.uniqueItems === true) throw refused(root, path, 'has "uniqueItems"');
  const first = ((schema.prefixItems ?? []) as unknown[]).map((one, index) =>
    maker(root, one, `${path}/${index}`, depth + 1),
  );
  const least = Number(schema.minItems ?? 0);
  const most = Math.min(Number(schema.maxItems ?? Number.POSITIVE_INFINITY), least + extraMax);
  const isClosed = schema.items === false || (depth > depthMax / 2 && least <= first.length);
  const rest = isClosed ? undefined : maker(root, schema.items ?? true, `${path}/*`, depth + 1);
  if (rest === undefined && least > first.length)
    throw refused(root, path, 'wants more items than it allows');
  return (noise) => {
    const length = least + Math.floor(noise.next() * (most - least + 1));
    const ended = rest === undefined ? Math.min(length, first.length) : length;
    return Array.from({ length: ended }, (_, index) => (first[index] ?? rest)?.(noise));
  };
}

function resolve(root: SchemaRoot, reference: string, path: string): unknown {
  if (!reference.startsWith('#')) throw refused(root, path, `refers to ${reference}`);
  let found: unknown = root.schema;
  for (const part of reference.slice(1).split('/').slice(1)) {
    const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    found = (found as Record<string, unknown> | undefined)?.[name];
  }
  return found;
}
