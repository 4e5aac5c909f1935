/** What is kept of a mismatch (validation.ts). */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { ApiError } from '../../../../src/core/errors.ts';
import { Schema, unwatched } from '../../../../src/declarations/schemas/schema.ts';

function refusalOf(schema: object, text: string): ApiError {
  try {
    new Schema(JSON.stringify(schema), unwatched).check(JSON.parse(text), text.length);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('it matches');
}

const numbers = { additionalProperties: { type: 'number', maximum: 50 } };

it('a refusal knows the value that its first error is about, short, and answers without it', () => {
  const valueIn = (text: string): string | undefined => refusalOf(numbers, text).options.refusedValue;
  expect(valueIn('{"rms":120}')).toBe('120');
  expect(valueIn('{"rms":null}')).toBe('null');
  expect(valueIn('{"rms":"a\\"\\n\\u202E"}')).toBe(JSON.stringify('a"\n\u202E'));
  expect(valueIn(`{"rms":"${'x'.repeat(1_000)}"}`)).toBe(`"${'x'.repeat(64)}"…`);
  expect(valueIn('{"rms":{"secret":1}}')).toBeUndefined();
  expect(valueIn('{"first":1,"second":51,"third":52}')).toBe('51');
  expect(JSON.stringify(refusalOf(numbers, '{"rms":120}'))).not.toContain('120');
});

it('a refusal does not keep the body that it is of', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const heapBytes = (): number => {
    for (let n = 0; n < 3; n += 1) collect();
    return process.memoryUsage().heapUsed;
  };
  const before = heapBytes();
  const kept = Array.from({ length: 600 }, (_, n) =>
    refusalOf(numbers, `{"${n}${'y'.repeat(60_000)}":"${n}${'z'.repeat(60_000)}"}`),
  );
  expect(heapBytes() - before).toBeLessThan(15_000_000);
  expect(kept[0]?.options.errors?.[0]?.path).toHaveLength(256);
});
