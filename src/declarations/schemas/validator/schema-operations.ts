import type { JsonObject } from '../payload.ts';
import type { Subschema } from '../schema-keywords.ts';

/** From so many on a subschema counts its operations where it is applied: often it is not, such as an absent member's. */
const heavyOperations = 16;

/** Those of listing the members of a small object. */
const listingOperations = 8;

/**
 * The operations of holding a value against a subschema, some 10 ns each, known before there is a value. What grows
 * with the value, or is referred to, counts as it is done.
 */
export class SchemaOperations {
  readonly #known = new Map<JsonObject, number>();

  /** Those of its own that count where it is applied; 0 if they count with what is around it. */
  whereApplied(schema: JsonObject): number {
    const own = this.#ownOf(schema);
    return own > heavyOperations ? own : 0;
  }

  /** Those that count with what is around it. */
  of(schema: Subschema): number {
    if (typeof schema === 'boolean') return 1;
    const own = this.#ownOf(schema);
    return own > heavyOperations ? 1 : own;
  }

  #ownOf(schema: JsonObject): number {
    const known = this.#known.get(schema);
    if (known !== undefined) return known;
    const own = Object.entries(schema).reduce((sum, entry) => sum + this.#ofKeyword(...entry), 2);
    this.#known.set(schema, own);
    return own;
  }

  #ofKeyword(keyword: string, value: unknown): number {
    switch (keyword) {
      case '$defs':
        return 0;
      case 'required':
        return (value as string[]).length;
      case 'allOf':
      case 'anyOf':
      case 'oneOf':
      case 'prefixItems':
        return this.#sum(value as Subschema[]);
      case 'properties':
      case 'dependentSchemas':
        return this.#sum(Object.values(value as Record<string, Subschema>));
      case 'not':
      case 'if':
      case 'then':
      case 'else':
        return this.of(value as Subschema);
      case 'minProperties':
      case 'maxProperties':
        return listingOperations;
      default:
        return 1;
    }
  }

  #sum(schemas: readonly Subschema[]): number {
    return schemas.reduce((sum, schema) => sum + 1 + this.of(schema), 0);
  }
}
