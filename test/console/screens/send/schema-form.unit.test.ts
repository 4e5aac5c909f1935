import { expect, it } from 'vitest';
import { formFieldsOf, payloadText, wrongValue } from '../../../../src/console/screens/send/schema-form.ts';

const schema = {
  type: 'object',
  required: ['rpm'],
  properties: {
    rpm: { type: 'integer', minimum: 0, maximum: 3_000 },
    mode: { enum: ['eco', 'fast'] },
    reverse: { type: 'boolean' },
    note: { type: 'string', maxLength: 20 },
  },
};

it('a schema of plain members is a form', () => {
  const fields = formFieldsOf(schema) ?? [];
  expect(fields.map(({ name, kind, isRequired, hint }) => [name, kind, isRequired, hint])).toEqual([
    ['rpm', 'integer', true, 'integer, 0 to 3000'],
    ['mode', 'choice', false, 'optional'],
    ['reverse', 'boolean', false, 'boolean, optional'],
    ['note', 'string', false, 'string, 20 characters at most, optional'],
  ]);
});

it.each([
  ['rpm', '3001', 'At most 3,000.'],
  ['rpm', '-1', 'At least 0.'],
  ['rpm', '1.5', 'A whole number.'],
  ['rpm', '2,000', 'A number, without commas or spaces: 3600, 0.5.'],
  ['rpm', '3000', undefined],
  ['rpm', '', undefined],
  ['note', 'a'.repeat(21), 'At most 20 characters: it has 21.'],
  ['note', '🦉'.repeat(20), undefined],
])('%s %s', (name, text, wrong) => {
  const field = formFieldsOf(schema)?.find((one) => one.name === name);
  expect(field && wrongValue(field, text)).toBe(wrong);
});

it('numbers are sent with the digits that were typed, what is empty is left out', () => {
  const fields = formFieldsOf(schema) ?? [];
  const text = payloadText(fields, { rpm: '9007199254740993', note: '"\n', reverse: 'true', mode: '' });
  expect(text).toBe('{\n  "rpm": 9007199254740993,\n  "reverse": true,\n  "note": "\\"\\n"\n}');
  expect(payloadText(fields, { rpm: '0x10' })).toBeUndefined();
});

it.each([
  [{ type: 'object' }],
  [{ ...schema, anyOf: [{}] }],
  [{ type: 'object', properties: { deep: { type: 'object' } } }],
  [{ type: 'object', properties: { either: { type: ['string', 'null'] } } }],
  [true],
])('what a form cannot say is written as JSON: %o', (other) => {
  expect(formFieldsOf(other)).toBeUndefined();
});
