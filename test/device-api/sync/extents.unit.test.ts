import fc from 'fast-check';
import { expect, it } from 'vitest';
import { extentsOf } from '../../../src/device-api/sync/extents.ts';

/** What is found of each record, as text. */
function payloadsIn(text: string, count: number): string[] {
  const json = Buffer.from(text);
  const extents = extentsOf(json, 'records', 'payload', count);
  return Array.from({ length: count }, (_, index) =>
    json.toString('utf8', extents[2 * index], extents[2 * index + 1]),
  );
}

const space = fc.stringMatching(/^[ \t\r\n]{0,2}$/);
/** A name as JSON may spell it. */
const spelled = (name: string): fc.Arbitrary<string> =>
  fc.array(fc.boolean(), { minLength: name.length, maxLength: name.length }).map((escaped) => {
    const letters = [...name].map((letter, at) =>
      escaped[at] ? `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}` : letter,
    );
    return `"${letters.join('')}"`;
  });
const anyText = fc.oneof(
  fc.jsonValue({ noUnicodeString: false } as object).map((value) => JSON.stringify(value)),
  fc.constantFrom(
    '"}]"',
    '"\\""',
    '"\\\\"',
    '{"payload":1}',
    '[{"records":[]}]',
    '-1.5E+3',
    '""',
    '{}',
    '[]',
  ),
);
/** An object with these members, in any order and any space, some of which come again. */
function objectOf(members: fc.Arbitrary<readonly [string, string]>): fc.Arbitrary<string> {
  return fc
    .array(fc.tuple(members, space, space, space, space), { maxLength: 6 })
    .map((all) => all.map(([[name, value], a, b, c, d]) => `${a}${name}${b}:${c}${value}${d}`).join(','))
    .chain((text) => space.map((inner) => `{${inner}${text}${text === '' ? '' : inner}}`));
}
const other = fc.string().map((name) => JSON.stringify(name));
const record = fc.oneof(
  { weight: 5, arbitrary: objectOf(fc.tuple(fc.oneof(spelled('payload'), other), anyText)) },
  { weight: 1, arbitrary: anyText },
);
const list = fc
  .array(fc.tuple(record, space, space), { maxLength: 6 })
  .map((all) => `[${all.map(([text, a, b]) => a + text + b).join(',')}]`);
const body = objectOf(
  fc.oneof(
    { weight: 3, arbitrary: fc.tuple(spelled('records'), list) },
    { weight: 1, arbitrary: fc.tuple(other, anyText) },
  ),
);

it('D11: of any sound JSON the payloads are found that JSON.parse has, the last of equal members', () => {
  fc.assert(
    fc.property(body, space, space, (text, before, after) => {
      const json = before + text + after;
      const { records = [] } = JSON.parse(json);
      if (!Array.isArray(records)) return;
      const found = payloadsIn(json, records.length);
      for (const [index, item] of records.entries()) {
        const isObject = typeof item === 'object' && item !== null && !Array.isArray(item);
        const has = isObject && Object.hasOwn(item, 'payload');
        if (has) expect(JSON.parse(found[index] ?? '')).toEqual(item.payload);
        else expect(found[index]).toBe('');
        // No space around it is a part of it.
        expect(found[index]?.trim()).toBe(found[index]);
      }
    }),
    { numRuns: 2_000 },
  );
});

it.each([
  ['{"records":[]}', []],
  ['{"records":[{"payload":{ "a" : 1 } },{},7]}', ['{ "a" : 1 }', '', '']],
  ['{"records":[1],"records":[{"payload":1,"payload":2}]}', ['2']],
  ['{"a":{"records":[{"payload":1}]},"records":[{"x":{"payload":3}}]}', ['']],
  ['{"records":[{"\\u0070ayload":"é"}]}', ['"é"']],
  ['{"records":[{"payload ":1,"payloads":2,"payloa":3}]}', ['']],
])('%s', (text, expected) => {
  expect(payloadsIn(text, expected.length)).toEqual(expected);
});
