import { expect, it } from 'vitest';
import { ExactNumber, parseExactly, writeExactly } from '../../../src/console/server/exact-json.ts';

it('a payload is written on one line, its numbers as their sender wrote them', () => {
  const payload = { counter: new ExactNumber('9007199254740993'), more: [1.5, null, true, { a: '"\n' }] };
  const line = '{"counter": 9007199254740993, "more": [1.5, null, true, {"a": "\\"\\n"}]}';
  expect(writeExactly(payload, 1_000)).toBe(line);
});

it.each([0, 1, 7, 30])('at most %d characters of it are written, and that there are more', (length) => {
  const text = writeExactly({ a: Array.from({ length: 100 }, () => ({ b: [] })) }, length);
  expect([text.length, text.at(-1)]).toEqual([length + 1, '…']);
});

it('a payload so deep and wide that to write it whole would take long is written as far as it is shown', () => {
  let deep: unknown = [];
  for (let level = 0; level < 2_000; level += 1) deep = [deep];
  expect(writeExactly(deep, 20)).toBe(`${'['.repeat(20)}…`);
});

it('what is no JSON is refused, and numbers that are exact stay numbers', () => {
  expect(() => parseExactly('{')).toThrow(SyntaxError);
  expect(parseExactly('{"a":[1,2.5]}')).toEqual({ a: [1, 2.5] });
});
