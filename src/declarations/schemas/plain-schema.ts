import type { JsonObject } from './payload.ts';
import { formOfKeyword, membersOf, type Subschema } from './schema-keywords.ts';
import { SchemaReferences } from './schema-references.ts';

/**
 * Reduces a schema to what validation uses. Both the validator and the cost analysis get the result, so that they agree. All
 * references become `#` or `#/$defs/N`; other identifiers and all annotations are removed.
 * @throws Error for unknown keywords of JSON Schema 2020-12, and for dangling references.
 */
export function plainSchema(root: JsonObject): JsonObject {
  return new Rewriter(root).rewritten();
}

class Rewriter {
  readonly #root: JsonObject;
  readonly #references: SchemaReferences;
  /** Numbers of referenced subschemas. */
  readonly #numbers = new Map<Subschema, number>();

  constructor(root: JsonObject) {
    this.#root = root;
    this.#references = new SchemaReferences(root);
    this.#number(root);
  }

  rewritten(): JsonObject {
    const root = this.#rewrite(this.#root) as JsonObject;
    const definitions = [...this.#numbers].map(([schema, number]) => [number, this.#rewrite(schema)]);
    return definitions.length === 0 ? root : { ...root, $defs: Object.fromEntries(definitions) };
  }

  #number(schema: Subschema): void {
    if (typeof schema === 'boolean') return;
    for (const target of this.#references.targets(schema)) {
      if (target !== this.#root && !this.#numbers.has(target)) this.#numbers.set(target, this.#numbers.size);
    }
    for (const [, member] of membersOf(schema)) this.#number(member);
  }

  /** Rewrites a subschema, or replaces it by a reference if others refer to it too, so that nothing is duplicated. */
  #embed(schema: Subschema): Subschema {
    const isReferred = typeof schema === 'object' && (schema === this.#root || this.#numbers.has(schema));
    return isReferred ? { $ref: this.#referenceTo(schema) } : this.#rewrite(schema);
  }

  #referenceTo(schema: Subschema): string {
    return schema === this.#root ? '#' : `#/$defs/${this.#numbers.get(schema)}`;
  }

  #rewrite(schema: Subschema): Subschema {
    if (typeof schema === 'boolean') return schema;
    const rewritten: JsonObject = {};
    for (const [keyword, value] of Object.entries(schema)) {
      if (keyword === '$defs' || keyword === 'definitions' || keyword === 'contentSchema') continue;
      const form = formOfKeyword(keyword);
      if (form === 'check') rewritten[keyword] = value;
      else if (form === 'schema') rewritten[keyword] = this.#embed(value as Subschema);
      else if (form === 'list') rewritten[keyword] = (value as Subschema[]).map((item) => this.#embed(item));
      else if (form === 'map')
        rewritten[keyword] = mapped(value as Record<string, Subschema>, (member) => this.#embed(member));
    }
    this.#refer(schema, rewritten);
    requireBySchemas(rewritten);
    return rewritten;
  }

  #refer(schema: JsonObject, rewritten: JsonObject): void {
    const [first, ...others] = this.#references.targets(schema).map((target) => this.#referenceTo(target));
    if (first !== undefined) rewritten.$ref = first;
    if (others.length === 0) return;
    const all = (rewritten.allOf ?? []) as Subschema[];
    rewritten.allOf = [...all, ...others.map(($ref) => ({ $ref }))];
  }
}

/** Says `dependentRequired` by `dependentSchemas`: one keyword less to check and to count. */
function requireBySchemas(schema: JsonObject): void {
  const { dependentRequired, dependentSchemas, allOf } = schema;
  if (dependentRequired === undefined) return;
  delete schema.dependentRequired;
  const requiring = mapped(dependentRequired as Record<string, string[]>, (required) => ({ required }));
  if (dependentSchemas === undefined) schema.dependentSchemas = requiring;
  else schema.allOf = [...((allOf ?? []) as Subschema[]), { dependentSchemas: requiring }];
}

/** Maps to own members, `__proto__` included. */
function mapped<T>(
  values: Readonly<Record<string, T>>,
  map: (value: T) => Subschema,
): Record<string, Subschema> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}
