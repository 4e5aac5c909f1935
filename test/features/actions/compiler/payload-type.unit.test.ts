import { expect, it } from 'vitest';
import { payloadType } from '../../../../src/features/actions/compiler/payload-type.ts';

it.each([
  [{ type: 'string' }, '(string)'],
  [{ type: ['integer', 'null'] }, '((number) | (null))'],
  [{ enum: ['a', 1, null] }, '("a") | (1) | (null)'],
  [{ const: 'x' }, '"x"'],
  [{ type: 'array', items: { type: 'boolean' } }, '(readonly ((boolean))[])'],
  [
    {
      type: 'object',
      properties: { 'a"b': { type: 'number' } },
      required: ['a"b'],
      additionalProperties: false,
    },
    '({ readonly "a\\"b": (number); })',
  ],
  [{ properties: { a: {} } }, '({ readonly "a"?: any; readonly [member: string]: any; })'],
  [{ anyOf: [{ type: 'string' }, { type: 'number' }] }, '((string)) | ((number))'],
  [{ $ref: '#/$defs/a' }, 'any'],
  [{ anyOf: [{ type: 'string' }, {}] }, 'any'],
  [false, 'never'],
  [true, 'any'],
])('the type of %j', (schema, type) => {
  const part =
    schema !== null && typeof schema === 'object' && 'anyOf' in schema && type !== 'any' ? `(${type})` : type;
  expect(payloadType([JSON.stringify(schema)])).toBe(`(${part})`);
});

it('the type of a payload that matches one of some schemas, or needs to match none', () => {
  expect(payloadType([])).toBe('JsonObject');
  expect(payloadType(['{"type":"string"}', 'true'])).toBe('((string)) | (any)');
});
