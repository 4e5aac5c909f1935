import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasMoreValues, isNestedOver } from '../../src/core/json-shape.ts';
import { checkSchema } from '../../src/declarations/schemas/check-schema.ts';
import { Schema, unwatched } from '../../src/declarations/schemas/schema.ts';

const lenient = { schemaStepsMax: 1_000_000, schemaPatternStatesMax: 10_000 };

function matches(schema: object, value: object): boolean {
  try {
    new Schema(JSON.stringify(schema), unwatched).check(value as Record<string, unknown>, 100);
    return true;
  } catch {
    return false;
  }
}

/** Ajv by itself, without what was made of the schema for it. */
const ajv = { strict: false, ownProperties: true, validateSchema: false, meta: false } as const;
const vocabularies = [
  'core',
  'applicator',
  'unevaluated',
  'validation',
  'meta-data',
  'format-annotation',
  'content',
];
const library = new Ajv2020();
/** The keywords of 2020-12, from the library's copy of its meta-schemas. */
const known = new Set(
  vocabularies.flatMap((name) => {
    const { schema } = library.getSchema(`https://json-schema.org/draft/2020-12/meta/${name}`) ?? {};
    return Object.keys((schema as { properties: object }).properties);
  }),
);

/** Keywords of earlier drafts in the meta-schema, each with a value that it accepts. */
const reserved: Record<string, unknown> = Object.assign(Object.create(null), {
  $recursiveRef: '#',
  $recursiveAnchor: 'a',
  dependencies: {},
});
const unknownKeyword = fc
  .oneof(
    fc.constantFrom(
      '$async',
      'nullable',
      'discriminator',
      '$recursiveRef',
      '$recursiveAnchor',
      'dependencies',
    ),
    fc.constantFrom(
      'formatMinimum',
      'additionalItems',
      'id',
      '$data',
      '__proto__',
      'constructor',
      'toString',
    ),
    fc.string({ minLength: 1, maxLength: 6 }),
  )
  .filter((name) => !known.has(name) && name !== 'definitions' && !name.startsWith('x-'));

type Wrap = (schema: object) => object;
/** Every place that a subschema can have. */
const places: Record<string, Wrap> = {
  ...Object.fromEntries(
    [
      ...['items', 'contains', 'additionalProperties', 'propertyNames', 'unevaluatedItems', 'not', 'if'],
      ...['unevaluatedProperties', 'then', 'else', 'contentSchema'],
    ].map((keyword): [string, Wrap] => [`/${keyword}`, (schema) => ({ [keyword]: schema })]),
  ),
  ...Object.fromEntries(
    ['prefixItems', 'allOf', 'anyOf', 'oneOf'].map((keyword): [string, Wrap] => [
      `/${keyword}/1`,
      (schema) => ({ [keyword]: [true, schema] }),
    ]),
  ),
  ...Object.fromEntries(
    ['$defs', 'definitions', 'properties', 'patternProperties', 'dependentSchemas'].map(
      (keyword): [string, Wrap] => [`/${keyword}/a~1b`, (schema) => ({ [keyword]: { 'a/b': schema } })],
    ),
  ),
};
const inA = (schema: object): object => ({ properties: { a: schema } });
const place = fc.constantFrom(...Object.entries(places));

describe('only keywords of JSON Schema 2020-12 are taken', () => {
  it('takes all of them', () => {
    expect(known.size).toBeGreaterThan(50);
    const samples: Record<string, unknown> = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'https://example.com/a',
      $ref: '#',
      $anchor: 'a',
      $dynamicRef: '#d',
      $dynamicAnchor: 'd',
      $vocabulary: {},
    };
    const tried = [...known].filter((keyword) => !['$ref', '$dynamicRef'].includes(keyword));
    for (const keyword of tried) {
      const values = [samples[keyword], {}, [{}], 'object', 1, true, ['a'], { a: ['b'] }];
      const isTaken = values.some((value) => {
        try {
          if (value === undefined) return false;
          checkSchema({ [keyword]: value }, lenient);
          return true;
        } catch {
          return false;
        }
      });
      expect([keyword, isTaken]).toEqual([keyword, true]);
    }
    checkSchema({ properties: { a: { $ref: '#' } } }, lenient);
    checkSchema({ $dynamicAnchor: 'd', properties: { a: { $dynamicRef: '#d' } } }, lenient);
  });

  it('refuses any other, wherever there is a subschema, with its path', () => {
    fc.assert(
      fc.property(fc.array(place, { maxLength: 5 }), unknownKeyword, fc.jsonValue(), (way, keyword, any) => {
        const value = reserved[keyword] ?? any;
        const schema = way.reduceRight<object>((inner, [, wrap]) => wrap(inner), { a: 0 });
        // A function, since a `$&` in the keyword would stand for what is replaced.
        const text = JSON.stringify(schema).replace(
          '"a":0',
          () => `${JSON.stringify(keyword)}:${JSON.stringify(value)}`,
        );
        const path = way.map(([pointer]) => pointer).join('');
        const shown = `${path}/${keyword.replaceAll('~', '~0').replaceAll('/', '~1')}`.replace(
          /[^\x20-\x7e]/g,
          '?',
        );
        expect(() => checkSchema(JSON.parse(text), lenient)).toThrow(
          `${shown.slice(0, 200)} is not a keyword`,
        );
      }),
      { numRuns: 200 },
    );
  });

  it('looks at no value and at no annotation', () => {
    const value = { $async: true, nullable: true, not: { nonsense: 1 } };
    for (const keyword of ['const', 'default', 'x-ours']) checkSchema({ [keyword]: value }, lenient);
    for (const keyword of ['enum', 'examples']) checkSchema({ [keyword]: [value] }, lenient);
    expect(matches({ properties: { a: { const: value } } }, { a: value })).toBe(true);
    expect(matches({ properties: { $async: { type: 'string' } } }, { $async: 1 })).toBe(false);
  });

  it.each([
    ['a value', { const: { $async: true }, properties: { a: { $ref: '#/const' } } }],
    ['a list of values', { enum: [{ $async: true }], properties: { a: { $ref: '#/enum/0' } } }],
    ['an annotation', { 'x-a': { $async: true }, properties: { a: { $ref: '#/x-a' } } }],
    ['a map of subschemas', { properties: { $async: {}, a: { $ref: '#/properties' } } }],
    ['an anchor that a value has', { const: { $anchor: 'v' }, properties: { a: { $ref: '#v' } } }],
    ['an $id that a value has', { const: { $id: 'x:/v' }, properties: { a: { $ref: 'x:/v' } } }],
    ['nothing', { properties: { a: { $ref: '#/$defs/a' } } }],
    ['no dynamic anchor', { properties: { a: { $dynamicRef: '#nobody' } } }],
    ['the meta-schema', { $ref: 'https://json-schema.org/draft/2020-12/schema' }],
  ])('a reference to %s is refused', (_, schema) => {
    expect(() => checkSchema(schema, lenient)).toThrow(/does not lead to one of its subschemas/);
  });

  it.each([
    [
      { $schema: 'http://json-schema.org/draft-07/schema#' },
      '/$schema names another dialect: leave it out, or use h',
    ],
    [
      { type: 'strin' },
      ': /type must be one of array, boolean, integer, null, number, object, string, or a list of',
    ],
    [{ items: { type: ['string', 'strin'] } }, ': /items/type/1 must be one of array, '],
    [{ properties: { type: 1 } }, ': /properties/type must be object or boolean'],
    [
      { properties: { 'a/b': { pattern: '(?=x)' } } },
      ': /properties/a~1b/pattern is not usable: invalid or unsupported',
    ],
    [
      { allOf: [{}, { patternProperties: { a: {}, '(': {} } }] },
      ': /allOf/1/patternProperties/( is not usable: missing',
    ],
    [
      { properties: { a: { $ref: '#/$defs/b' } }, $defs: { b: { pattern: '[' } } },
      ': /$defs/b/pattern is not usable',
    ],
    [{ required: 'a' }, ': /required must be array'],
  ])('says what is wrong with %j, and where', (schema, sentence) => {
    const start = 'This is not a usable JSON Schema 2020-12';
    expect(() => checkSchema(schema, lenient)).toThrow(sentence);
    expect(() => checkSchema(schema, lenient)).toThrow(start);
  });

  it('has errors of a bounded length, however long its names are: each of twenty had 60 KB', () => {
    const schema = { properties: { list: { items: { required: ['n'.repeat(60_000)] } } } };
    const check = () => new Schema(JSON.stringify(schema), unwatched).check({ list: [{}, {}] }, 20);
    const msg = `must have required property '${'n'.repeat(300)}`.slice(0, 256);
    const errors = [0, 1].map((index) => ({ path: `/list/${index}`, msg }));
    expect(check).toThrow(expect.objectContaining({ options: { errors } }));
  });

  it('takes no longer for alternatives that fail under a long name, whose place is not reported', () => {
    const leastMs = (name: string): number => {
      const any = [...Array.from({ length: 50 }, () => ({ type: 'string' })), true];
      const schema = { additionalProperties: { items: { anyOf: any } }, required: ['missing'] };
      const body = { [name]: Array.from({ length: 300 }, () => 1) };
      const times = Array.from({ length: 3 }, () => {
        const startMs = performance.now();
        expect(matches(schema, body)).toBe(false);
        return performance.now() - startMs;
      });
      return Math.min(...times);
    };
    // They took 2.9 s, for 300 items.
    expect(leastMs('n/'.repeat(15_000))).toBeLessThan(30 * leastMs('n') + 30);
  });

  it('takes no longer for members of a long name: V8 hashes no more than the length of their pointers', () => {
    const members = Object.fromEntries(
      Array.from({ length: 3_000 }, (_, index) => [`${1_000 + index}`, true]),
    );
    const leastMs = (name: string): number => {
      const schema = { type: 'object', properties: { [name]: { properties: members } } };
      const times = Array.from({ length: 3 }, () => {
        const startMs = performance.now();
        expect(matches(schema, { a: 1 })).toBe(true);
        return performance.now() - startMs;
      });
      return Math.min(...times);
    };
    // They took 200 times as long.
    expect(leastMs('n'.repeat(20_000))).toBeLessThan(30 * leastMs('n') + 30);
  });

  it('refuses an $id, or a reference to one, that is too long to be resolved again and again', () => {
    const long = `x:/${'a'.repeat(1_000)}`;
    for (const schema of [
      { $id: long },
      { $ref: long },
      { $id: 'x:/a/', $defs: { b: { $id: long.slice(3) } } },
    ])
      expect(() => checkSchema(schema, lenient)).toThrow('is longer than 1000 characters with its base');
  });

  it('refuses another dialect, an $id that two have, and a dynamic reference that could lead to two', () => {
    expect(() => checkSchema({ $schema: 'http://json-schema.org/draft-07/schema#' }, lenient)).toThrow(
      /dialect/,
    );
    expect(() =>
      checkSchema({ $schema: 'https://json-schema.org/draft/2020-12/meta/core', properties: 1 }, lenient),
    ).toThrow();
    const $defs = { a: { $id: 'x:/a' }, b: { $id: 'x:/a' } };
    expect(() => checkSchema({ $defs }, lenient)).toThrow(/another subschema/);
    const dynamic = { $id: 'x:/a', $dynamicAnchor: 'n' };
    expect(() =>
      checkSchema(
        { $dynamicAnchor: 'n', $defs: { dynamic }, properties: { a: { $dynamicRef: '#n' } } },
        lenient,
      ),
    ).toThrow(/the only one of its name/);
  });
});

const primitive = fc.constantFrom<unknown>(
  0,
  1,
  -0,
  1.5,
  1e21,
  '',
  'a',
  '1',
  'true',
  '[1',
  true,
  false,
  null,
);
const { value: json } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    primitive,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', '1', '__proto__', 'a:1', ''), tie('value'), { maxKeys: 3 }),
  ),
}));

/** Equality of JSON Schema Core 2020-12, 4.2.2. */
function isEqual(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, index) => isEqual(item, other[index]));
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return one === other;
  const names = Object.keys(one);
  const of = (object: object, name: string): unknown => Object.getOwnPropertyDescriptor(object, name)?.value;
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isEqual(of(one, name), of(other, name)))
  );
}

describe('const and enum', () => {
  it('say of any two values what comparing them says', () => {
    fc.assert(
      fc.property(json, json, json, (one, other, value) => {
        const body = JSON.parse(JSON.stringify({ a: value }));
        expect(matches(inA({ const: one }), body)).toBe(isEqual(one, body.a));
        const isOne = [one, other].some((any) => isEqual(any, body.a));
        expect(matches(inA({ enum: [one, other] }), body)).toBe(isOne);
      }),
      { numRuns: 300 },
    );
    expect(matches(inA({ const: null }), JSON.parse('{"a":1e999}'))).toBe(false);
    expect(matches(inA({ const: [null] }), JSON.parse('{"a":[1e999]}'))).toBe(false);
  });

  it('walk a value once, however many objects it is compared with: a body of 64 KiB took 30 s', () => {
    let walks = 0;
    const count = (target: object): string[] => {
      walks += 1;
      return Reflect.ownKeys(target) as string[];
    };
    const value = new Proxy({ n: 1 }, { ownKeys: count });
    const others = Array.from({ length: 50 }, (_, index) => ({ const: { n: 1, index } }));
    expect(matches(inA({ anyOf: [...others, { const: { n: 1 } }] }), { a: value })).toBe(true);
    expect(walks).toBe(1);
  });
});

it('the members of an object are listed once for all keywords that go through them: they took 12 s', () => {
  let walks = 0;
  const members = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`m${index}`, 1]));
  const value = new Proxy(members, {
    ownKeys: (target) => {
      walks += 1;
      return Reflect.ownKeys(target);
    },
  });
  const all = {
    minProperties: 1,
    maxProperties: 1_000,
    propertyNames: { minLength: 1 },
    patternProperties: { m: {} },
    additionalProperties: {},
    unevaluatedProperties: {},
  };
  expect(matches(inA({ allOf: [all, { ...all }, { ...all }] }), { a: value })).toBe(true);
  expect(walks).toBe(1);
});

describe('uniqueItems', () => {
  it('says of any list what comparing each item with each other says', () => {
    fc.assert(
      fc.property(
        fc.array(json, { maxLength: 6 }),
        fc.array(fc.nat(5), { maxLength: 2 }),
        (items, repeated) => {
          const again = repeated.flatMap((index) => (index < items.length ? [items[index]] : []));
          // As from a body, where no two values are one object.
          const body = JSON.parse(JSON.stringify({ a: [...items, ...again] }));
          const isUnique = body.a.every((item: unknown, index: number) =>
            body.a.slice(0, index).every((before: unknown) => !isEqual(item, before)),
          );
          expect(matches({ properties: { a: { uniqueItems: true } } }, body)).toBe(isUnique);
        },
      ),
      { numRuns: 300 },
    );
  });

  it.each([
    ['1 and 1.0', '[1,1.0]', false],
    ['0 and -0', '[0,-0]', false],
    ['1 and "1"', '[1,"1"]', true],
    ['members in another order', '[{"a":1,"b":2},{"b":2,"a":1}]', false],
    ['a list and its text', '[[1],"[1"]', true],
    ['an object and a list', '[{},[]]', true],
    ['a name that has a colon', '[{"a:1":2},{"a":"1:2"}]', true],
    ['false and null and 0', '[false,null,0,""]', true],
  ])('%s', (_, items, isUnique) => {
    expect(matches({ properties: { a: { uniqueItems: true } } }, JSON.parse(`{"a":${items}}`))).toBe(
      isUnique,
    );
  });

  it('says which items are the same, at whatever depth', () => {
    const schema = {
      $defs: { l: { uniqueItems: true, items: { $ref: '#/$defs/l' } } },
      properties: { a: { $ref: '#/$defs/l' } },
    };
    const check = (): void =>
      new Schema(JSON.stringify(schema), unwatched).check({ a: [[1], [[2], [3], [2]]] }, 30);
    expect(check).toThrow(
      expect.objectContaining({
        options: {
          errors: [{ path: '/a/1', msg: 'must NOT have duplicate items (items ## 0 and 2 are identical)' }],
        },
      }),
    );
  });
});

const having = <T>(keyword: string, value: fc.Arbitrary<T>): fc.Arbitrary<[string, T]> =>
  value.map((any) => [keyword, any]);

/** Schemas that refer to parts of themselves in all the ways there are. */
const { schema: anySchema } = fc.letrec((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4 },
    fc.boolean(),
    fc
      .array(
        fc.oneof(
          having('type', fc.constantFrom('object', 'array', 'string', 'number', 'null')),
          having('title', fc.constant('said')),
          having('enum', fc.array(json, { minLength: 1, maxLength: 2 })),
          having('minItems', fc.nat(2)),
          having('maxLength', fc.nat(2)),
          having('uniqueItems', fc.boolean()),
          having('required', fc.constantFrom(['a'], ['b'])),
          having('dependentRequired', fc.constantFrom({ a: ['b'] }, { b: ['a', '1'] })),
          having(
            '$ref',
            fc.constantFrom('#/$defs/one', '#two', '#/$defs/three~1%C3%A9', '#/$defs/one/items'),
          ),
          ...['dependentSchemas', 'properties'].map((keyword) =>
            having(keyword, fc.dictionary(fc.constantFrom('a', 'b', '1'), tie('schema'), { maxKeys: 2 })),
          ),
          having(
            'patternProperties',
            fc.dictionary(fc.constantFrom('^a', 'b'), tie('schema'), { maxKeys: 1 }),
          ),
          ...['prefixItems', 'allOf', 'anyOf', 'oneOf'].map((keyword) =>
            having(keyword, fc.array(tie('schema'), { minLength: 1, maxLength: 2 })),
          ),
          ...['additionalProperties', 'unevaluatedProperties', 'propertyNames', 'items', 'contains'].map(
            (keyword) => having(keyword, tie('schema')),
          ),
          ...['unevaluatedItems', 'not', 'if', 'then', 'else'].map((keyword) =>
            having(keyword, tie('schema')),
          ),
        ),
        { minLength: 1, maxLength: 4 },
      )
      .map((members) => Object.fromEntries(members)),
  ),
}));
const part = fc.tuple(anySchema, fc.constantFrom('string', 'number', 'object'));

it('what is left of a schema for the check says of any body what all of it says', () => {
  let checked = 0;
  fc.assert(
    fc.property(anySchema, part, part, part, json, (root, [one, type], [two], [three], value) => {
      const schema = {
        ...(typeof root === 'object' ? root : { properties: { a: root } }),
        $defs: {
          one: { ...(one as object), items: { type } },
          two: { ...(two as object), $anchor: 'two' },
          'three/é': three,
        },
      };
      // Ajv takes for evaluated what an `if` that fails looked at, and all items beside `contains`.
      const text = JSON.stringify(schema);
      if (/"unevaluated/.test(text) && /"(if|contains)"/.test(text)) return;
      try {
        checkSchema(schema, lenient);
      } catch {
        return;
      }
      const body = JSON.parse(JSON.stringify({ a: value, b: 1 }));
      const whole = new Ajv2020(ajv).compile(schema);
      let isMatch: boolean | PromiseLike<unknown>;
      try {
        isMatch = whole(body);
      } catch {
        // Code that Ajv makes for some schemas throws: unevaluatedProperties behind a $ref in a oneOf.
        return;
      }
      checked += 1;
      expect(matches(schema, body)).toBe(isMatch);
    }),
    { numRuns: 400 },
  );
  expect(checked).toBeGreaterThan(100);
});

it.each([
  [
    'what a failed `if` looked at',
    { if: { properties: { a: false } }, unevaluatedProperties: false },
    { a: 1 },
    false,
  ],
  [
    'what an `if` looked at',
    { if: { properties: { a: true } }, unevaluatedProperties: false },
    { a: 1 },
    true,
  ],
  [
    'what `else` looked at',
    { if: false, else: { properties: { a: true } }, unevaluatedProperties: false },
    { a: 1 },
    true,
  ],
  [
    'an item that `contains` fits',
    inA({ contains: { const: 1 }, unevaluatedItems: false }),
    { a: [1, 1] },
    true,
  ],
  [
    'an item that it does not fit',
    inA({ contains: { const: 1 }, unevaluatedItems: false }),
    { a: [1, 2] },
    false,
  ],
  [
    'the alternatives that fit',
    { anyOf: [{ properties: { a: true } }, { properties: { b: true } }], unevaluatedProperties: false },
    { a: 1, b: 1 },
    true,
  ],
  [
    'not those that do not',
    {
      anyOf: [{ required: ['a'] }, { properties: { b: true }, required: ['c'] }],
      unevaluatedProperties: false,
    },
    { a: 1, b: 1 },
    false,
  ],
  [
    'what a $ref looked at',
    { $defs: { a: { properties: { a: true } } }, $ref: '#/$defs/a', unevaluatedProperties: false },
    { a: 1 },
    true,
  ],
  [
    'nothing that `not` looked at',
    { not: { not: { properties: { a: true } } }, unevaluatedProperties: false },
    { a: 1 },
    false,
  ],
  [
    'what one deep within looked at',
    { allOf: [{ unevaluatedProperties: { type: 'number' } }], unevaluatedProperties: false },
    { a: 1 },
    true,
  ],
])('counts as evaluated %s', (_, schema, body, isMatch) => {
  expect(matches(schema, body)).toBe(isMatch);
});

it('nesting is counted in the text, outside of strings', () => {
  const depthOf = (value: unknown): number =>
    typeof value !== 'object' || value === null ? 0 : 1 + Math.max(0, ...Object.values(value).map(depthOf));
  const text = fc.oneof(
    fc.string({ maxLength: 4 }),
    fc.constantFrom('[[[', '}}', '\\', '"', '\\"[', '{"a":['),
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 8 },
      text,
      fc.array(tie('value'), { maxLength: 2 }),
      fc.dictionary(text, tie('value'), { maxKeys: 2 }),
    ),
  }));
  fc.assert(
    fc.property(value, fc.nat(8), fc.constantFrom(undefined, 1), (any, levels, indent) => {
      const bytes = Buffer.from(JSON.stringify(any, undefined, indent));
      expect(isNestedOver(levels, bytes)).toBe(depthOf(any) > levels);
    }),
    { numRuns: 2_000 },
  );
});

it('values are counted as far as they go, and none within texts', () => {
  const list = Buffer.from(JSON.stringify([1, 'a,b[{', { a: '\\"' }, [], {}]));
  // Lists and objects count twice, but the first.
  expect([8, 9].map((valuesMax) => hasMoreValues(valuesMax, list))).toEqual([true, false]);
});

it('nesting in a member that another of its name replaces counts too', () => {
  const deep = `${'['.repeat(9)}${']'.repeat(9)}`;
  expect(isNestedOver(8, Buffer.from(`{"a":${deep},"a":1}`))).toBe(true);
});
