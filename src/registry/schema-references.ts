import type { JsonObject } from './payload.ts';

/** Schemas without an `$id` lie here; nothing is ever fetched. */
const nowhere = 'schema://fleetpost/';

/**
 * Where the references of one schema lead (JSON Schema Core 2020-12, 8.2): JSON Pointers, anchors, and the
 * `$id`s of subschemas. Only within the schema: there is nothing else that one could refer to.
 */
export class SchemaReferences {
  /** The URI that a subschema's references are relative to. */
  readonly #bases = new Map<JsonObject, string>();
  readonly #resources = new Map<string, JsonObject>();
  readonly #anchors = new Map<string, JsonObject>();
  readonly #dynamicAnchors = new Map<string, JsonObject[]>();

  constructor(root: JsonObject) {
    this.#resources.set(nowhere, root);
    this.#collect(root, nowhere);
  }

  /** What `$ref`, `$dynamicRef` and `$recursiveRef` of a subschema apply; one that leads nowhere applies nothing. */
  targets(schema: JsonObject): JsonObject[] {
    const { $ref, $dynamicRef, $recursiveRef } = schema;
    const base = this.#bases.get(schema) ?? nowhere;
    const found = [$ref, $dynamicRef, $recursiveRef].map((reference) =>
      typeof reference === 'string' ? this.#resolve(reference, base) : undefined,
    );
    // Which of the anchors it is depends on the way taken to it: as if it were all of them.
    const name = typeof $dynamicRef === 'string' ? $dynamicRef.replace(/^.*#/, '') : '';
    const all = new Set([...found, ...(this.#dynamicAnchors.get(name) ?? [])]);
    return [...all].filter((target) => target !== undefined);
  }

  #collect(value: unknown, outerBase: string): void {
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      for (const item of value) this.#collect(item, outerBase);
      return;
    }
    const schema = value as JsonObject;
    const base = typeof schema.$id === 'string' ? absolute(schema.$id, outerBase) : outerBase;
    this.#bases.set(schema, base);
    if (base !== outerBase) this.#resources.set(base, schema);
    if (typeof schema.$anchor === 'string') this.#anchors.set(`${base}#${schema.$anchor}`, schema);
    if (typeof schema.$dynamicAnchor === 'string') {
      const name = schema.$dynamicAnchor;
      this.#anchors.set(`${base}#${name}`, schema);
      this.#dynamicAnchors.set(name, [...(this.#dynamicAnchors.get(name) ?? []), schema]);
    }
    for (const member of Object.values(schema)) this.#collect(member, base);
  }

  #resolve(reference: string, base: string): JsonObject | undefined {
    const [before = '', fragment = ''] = reference.split('#', 2);
    const uri = before === '' ? base : absolute(before, base);
    if (fragment !== '' && !fragment.startsWith('/')) return this.#anchors.get(`${uri}#${fragment}`);
    let target: unknown = this.#resources.get(uri);
    for (const token of fragment.split('/').slice(1)) {
      if (typeof target !== 'object' || target === null) return undefined;
      target = (target as JsonObject)[unescapePointer(token)];
    }
    return typeof target === 'object' && target !== null ? (target as JsonObject) : undefined;
  }
}

function absolute(uri: string, base: string): string {
  try {
    const url = new URL(uri, base);
    url.hash = '';
    return url.href;
  } catch {
    return base;
  }
}

/** RFC 6901, 6: percent-encoding of the fragment, then `~1` and `~0`. */
function unescapePointer(token: string): string {
  let text = token;
  try {
    text = decodeURIComponent(token);
  } catch {
    // Not encoded, then.
  }
  return text.replaceAll('~1', '/').replaceAll('~0', '~');
}
