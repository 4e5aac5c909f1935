import type { JsonObject } from './payload.ts';
import { escapeToken, formOfKeyword, membersOf, type Subschema } from './schema-keywords.ts';

/** Base URI of schemas without an `$id`; nothing is ever fetched. */
const nowhere = 'schema://fleetpost/';
const dialectId = 'https://json-schema.org/draft/2020-12/schema';
const dialect = /^https:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;

/**
 * The subschemas of a schema by JSON Pointer, and the targets of its references (JSON Schema Core 2020-12, 8.2): JSON
 * Pointers, anchors, and the `$id`s of subschemas. References must stay within the schema, and lead to a subschema: a
 * value of `const`, say, was never checked as one.
 */
export class SchemaReferences {
  readonly #subschemas = new Map<string, Subschema>();
  /** Base URIs of subschemas. */
  readonly #bases = new Map<JsonObject, string>();
  /** Pointers by URI, with or without an anchor. */
  readonly #addresses = new Map<string, string>();
  readonly #dynamicAnchors = new Map<string, number>();

  /** @throws Error naming the path of an unknown keyword. */
  constructor(root: JsonObject) {
    this.#addresses.set(nowhere, '');
    this.#collect(root, '', nowhere);
  }

  subschema(pointer: string): Subschema {
    return this.#subschemas.get(pointer) ?? false;
  }

  /** Resolves `$ref` and `$dynamicRef` of a subschema to pointers. @throws Error for a dangling reference. */
  targets(schema: JsonObject): string[] {
    const { $ref, $dynamicRef } = schema;
    const base = this.#bases.get(schema) ?? nowhere;
    const pointers: string[] = [];
    if (typeof $ref === 'string') pointers.push(this.#resolve($ref, base));
    if (typeof $dynamicRef === 'string') {
      const name = $dynamicRef.replace(/^.*#/, '');
      // If there were several, the target would depend on the evaluation path.
      if ((this.#dynamicAnchors.get(name) ?? 0) > 1)
        throw new Error(`the $dynamicAnchor that a $dynamicRef leads to must be the only one of its name`);
      pointers.push(this.#resolve($dynamicRef, base));
    }
    return pointers;
  }

  #collect(value: Subschema, pointer: string, outerBase: string): void {
    this.#subschemas.set(pointer, value);
    if (typeof value === 'boolean') return;
    for (const keyword of Object.keys(value)) {
      if (formOfKeyword(keyword) === undefined) {
        throw new Error(`${quoted(`${pointer}/${escapeToken(keyword)}`)} is not a keyword`);
      }
    }
    const { $id, $anchor, $dynamicAnchor, $schema } = value;
    if (typeof $schema === 'string' && !dialect.test($schema))
      throw new Error(
        `${quoted(`${pointer}/$schema`)} names another dialect: leave it out, or use ${dialectId}`,
      );
    const base = typeof $id === 'string' ? absolute($id, outerBase) : outerBase;
    this.#bases.set(value, base);
    if (base !== outerBase) this.#name(base, pointer);
    if (typeof $anchor === 'string') this.#name(`${base}#${$anchor}`, pointer);
    if (typeof $dynamicAnchor === 'string') {
      this.#name(`${base}#${$dynamicAnchor}`, pointer);
      this.#dynamicAnchors.set($dynamicAnchor, (this.#dynamicAnchors.get($dynamicAnchor) ?? 0) + 1);
    }
    for (const [rest, member] of membersOf(value)) this.#collect(member, pointer + rest, base);
  }

  #name(address: string, pointer: string): void {
    const known = this.#addresses.get(address);
    if (known !== undefined && known !== pointer)
      throw new Error(`${quoted(pointer)} has an $id or anchor that another subschema has too`);
    this.#addresses.set(address, pointer);
  }

  #resolve(reference: string, base: string): string {
    const [before = '', fragment = ''] = reference.split('#', 2);
    const uri = before === '' ? base : absolute(before, base);
    const isPointer = fragment === '' || fragment.startsWith('/');
    const start = this.#addresses.get(isPointer ? uri : `${uri}#${fragment}`);
    const pointer = start === undefined || !isPointer ? start : start + canonical(fragment);
    if (pointer === undefined || !this.#subschemas.has(pointer))
      throw new Error(`the reference ${quoted(reference)} does not lead to one of its subschemas`);
    return pointer;
  }
}

function absolute(uri: string, base: string): string {
  try {
    const url = new URL(uri, base);
    url.hash = '';
    return url.href;
  } catch {
    throw new Error(`${quoted(uri)} is not a URI reference`);
  }
}

/** Decodes the fragment's percent-encoding (RFC 6901, 6) and escapes it as this file does. */
function canonical(fragment: string): string {
  const tokens = decodedFragment(fragment).split('/');
  return tokens.map((token) => escapeToken(token.replaceAll('~1', '/').replaceAll('~0', '~'))).join('/');
}

function decodedFragment(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    // It was not encoded.
    return fragment;
  }
}

/** Makes an operator's text safe to quote. */
export function quoted(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, 200);
}
