import type { JsonObject } from './payload.ts';
import { escapeToken, formOfKeyword, membersOf, type Subschema } from './schema-keywords.ts';

/** Base URI of schemas without an `$id`; nothing is ever fetched. */
const nowhere = 'schema://fleetpost/';
/** Longest URI: each reference is resolved against its base. */
const uriLengthMax = 1_000;
const dialectId = 'https://json-schema.org/draft/2020-12/schema';
const dialect = /^https:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;
const arrayIndex = /^(?:0|[1-9]\d*)$/;

/**
 * The targets of a schema's references (JSON Schema Core 2020-12, 8.2): JSON Pointers, anchors, and the `$id`s of
 * subschemas. References must stay within the schema, and lead to a subschema: a value of `const`, say, was never
 * checked as one. Subschemas are known by identity: their pointers can each be as long as the schema, and V8 hashes no
 * more of a long text than its length.
 */
export class SchemaReferences {
  /** Base URIs of subschemas. */
  readonly #bases = new Map<JsonObject, string>();
  /** Subschemas by URI, with or without an anchor. */
  readonly #addresses = new Map<string, JsonObject>();
  readonly #dynamicAnchors = new Map<string, number>();

  /** @throws Error naming the path of an unknown keyword. */
  constructor(root: JsonObject) {
    this.#addresses.set(nowhere, root);
    this.#collect(root, '', nowhere);
  }

  /** Resolves `$ref` and `$dynamicRef` of a subschema. @throws Error for a dangling reference. */
  targets(schema: JsonObject): Subschema[] {
    const { $ref, $dynamicRef } = schema;
    const base = this.#bases.get(schema) ?? nowhere;
    const targets: Subschema[] = [];
    if (typeof $ref === 'string') targets.push(this.#resolve($ref, base));
    if (typeof $dynamicRef === 'string') {
      const name = $dynamicRef.replace(/^.*#/, '');
      // If there were several, the target would depend on the evaluation path.
      if ((this.#dynamicAnchors.get(name) ?? 0) > 1)
        throw new Error(`the $dynamicAnchor that a $dynamicRef leads to must be the only one of its name`);
      targets.push(this.#resolve($dynamicRef, base));
    }
    return targets;
  }

  #collect(value: Subschema, pointer: string, outerBase: string): void {
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
    const name = (address: string): void => {
      if ((this.#addresses.get(address) ?? value) !== value)
        throw new Error(`${quoted(pointer)} has an $id or anchor that another subschema has too`);
      this.#addresses.set(address, value);
    };
    if (base !== outerBase) name(base);
    if (typeof $anchor === 'string') name(`${base}#${$anchor}`);
    if (typeof $dynamicAnchor === 'string') {
      name(`${base}#${$dynamicAnchor}`);
      this.#dynamicAnchors.set($dynamicAnchor, (this.#dynamicAnchors.get($dynamicAnchor) ?? 0) + 1);
    }
    for (const [rest, member] of membersOf(value)) this.#collect(member, pointer + rest, base);
  }

  #resolve(reference: string, base: string): Subschema {
    const [before = '', fragment = ''] = reference.split('#', 2);
    const uri = before === '' ? base : absolute(before, base);
    const isPointer = fragment === '' || fragment.startsWith('/');
    const start = this.#addresses.get(isPointer ? uri : `${uri}#${fragment}`);
    const target = start === undefined || !isPointer ? start : subschemaAt(start, tokensOf(fragment));
    if (target === undefined)
      throw new Error(`the reference ${quoted(reference)} does not lead to one of its subschemas`);
    return target;
  }
}

function absolute(uri: string, base: string): string {
  try {
    const url = new URL(uri.slice(0, uriLengthMax + 1), base);
    url.hash = '';
    if (url.href.length <= uriLengthMax) return url.href;
  } catch {
    throw new Error(`${quoted(uri)} is not a URI reference`);
  }
  throw new Error(`${quoted(uri)} is longer than ${uriLengthMax} characters with its base`);
}

/** Follows a JSON Pointer from subschema to subschema; undefined if it leads elsewhere. */
function subschemaAt(start: Subschema, tokens: readonly string[]): Subschema | undefined {
  let at = start;
  for (let index = 0; index < tokens.length; index += 1) {
    const keyword = tokens[index] ?? '';
    const form = formOfKeyword(keyword);
    let next = memberOf(at, keyword);
    if (form === 'list' || form === 'map') {
      index += 1;
      const name = tokens[index] ?? '';
      next = form === 'map' || arrayIndex.test(name) ? memberOf(next, name) : undefined;
    } else if (form !== 'schema') return undefined;
    if (next === undefined) return undefined;
    at = next as Subschema;
  }
  return at;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as JsonObject)[name]
    : undefined;
}

/** Decodes the fragment's percent-encoding (RFC 6901, 6), and its tokens. */
function tokensOf(fragment: string): string[] {
  const [, ...tokens] = decodedFragment(fragment).split('/');
  return tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
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
