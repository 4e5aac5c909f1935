import type { JsonObject } from './payload.ts';
import { escapeToken, formOfKeyword, membersOf, type Subschema } from './schema-keywords.ts';

/** Schemas without an `$id` lie here; nothing is ever fetched. */
const nowhere = 'schema://fleetpost/';
const dialect = /^https:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;

/**
 * The subschemas of one schema by their JSON Pointers, and where its references lead (JSON Schema Core 2020-12, 8.2):
 * JSON Pointers, anchors, and the `$id`s of subschemas. Only within the schema: there is nothing else that one could
 * refer to; and only to a subschema: a value of `const`, say, was never looked at as one.
 */
export class SchemaReferences {
  readonly #subschemas = new Map<string, Subschema>();
  /** The URI that a subschema's references are relative to. */
  readonly #bases = new Map<JsonObject, string>();
  /** Pointers by URI, with the anchor behind it or without. */
  readonly #addresses = new Map<string, string>();
  readonly #dynamicAnchors = new Map<string, number>();

  /** @throws Error for a member that is no keyword of JSON Schema 2020-12, with its path. */
  constructor(root: JsonObject) {
    this.#addresses.set(nowhere, '');
    this.#collect(root, '', nowhere);
  }

  subschema(pointer: string): Subschema {
    return this.#subschemas.get(pointer) ?? false;
  }

  /** The pointers of what `$ref` and `$dynamicRef` of a subschema apply. @throws Error where one leads nowhere. */
  targets(schema: JsonObject): string[] {
    const { $ref, $dynamicRef } = schema;
    const base = this.#bases.get(schema) ?? nowhere;
    const pointers: string[] = [];
    if (typeof $ref === 'string') pointers.push(this.#resolve($ref, base));
    if (typeof $dynamicRef === 'string') {
      const name = $dynamicRef.replace(/^.*#/, '');
      // Which one it is would depend on the way taken to it.
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
        throw new Error(`${shown(`${pointer}/${escapeToken(keyword)}`)} is no keyword of it`);
      }
    }
    const { $id, $anchor, $dynamicAnchor, $schema } = value;
    if (typeof $schema === 'string' && !dialect.test($schema))
      throw new Error(`${shown(`${pointer}/$schema`)} names another dialect`);
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
      throw new Error(`${shown(pointer)} has an $id or anchor that another subschema has too`);
    this.#addresses.set(address, pointer);
  }

  #resolve(reference: string, base: string): string {
    const [before = '', fragment = ''] = reference.split('#', 2);
    const uri = before === '' ? base : absolute(before, base);
    const isPointer = fragment === '' || fragment.startsWith('/');
    const start = this.#addresses.get(isPointer ? uri : `${uri}#${fragment}`);
    const pointer = start === undefined || !isPointer ? start : start + canonical(fragment);
    if (pointer === undefined || !this.#subschemas.has(pointer))
      throw new Error(`the reference ${shown(reference)} does not lead to one of its subschemas`);
    return pointer;
  }
}

function absolute(uri: string, base: string): string {
  try {
    const url = new URL(uri, base);
    url.hash = '';
    return url.href;
  } catch {
    throw new Error(`${shown(uri)} is no URI reference`);
  }
}

/** RFC 6901, 6: percent-encoding of the fragment; then as this file writes it. */
function canonical(fragment: string): string {
  const tokens = decoded(fragment).split('/');
  return tokens.map((token) => escapeToken(token.replaceAll('~1', '/').replaceAll('~0', '~'))).join('/');
}

function decoded(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    // Not encoded, then.
    return fragment;
  }
}

/** An operator's text, for a sentence to an operator. */
function shown(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, 200);
}
