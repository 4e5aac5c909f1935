import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { escapedJson, hidden, isCopied, shellWord } from '../../../src/console/parts/hidden-characters.ts';

it('a word of a copied command is what is seen, and the shell makes of it what was meant', () => {
  const texts = [
    'PUMP000001',
    '',
    `it's "a" \\ $(x) \`y\` !`,
    'name:"x\u0003touch /tmp/pwn\n\u001b[201~"',
    `'\u0003\\x03'`,
    'a\u0003b9\u202eétag\u{e0041}\u200d\u0085',
  ];
  for (const text of texts) {
    const word = shellWord(text);
    expect(word.match(hidden), word).toBeNull();
    expect(execFileSync('bash', ['-c', `printf %s ${word}`]).toString()).toBe(text);
  }
  expect(shellWord('x\u0003')).toBe(`$'x\\x03'`);
});

it('a copied payload is the same JSON with its hidden characters as escapes', () => {
  const payload = { 'k\u009b': 'a\u0085b\u202ec\n\u{e0041}' };
  const json = escapedJson(JSON.stringify(payload, null, 2));
  expect(json.replaceAll('\n', '').match(hidden)).toBeNull();
  expect(JSON.parse(json)).toEqual(payload);
});

it('what else is copied has no control characters, and one line has no end', () => {
  expect(isCopied('PUMP000001', false)).toBe(true);
  expect(isCopied('const a = 1;\n\tb();\n', true)).toBe(true);
  for (const text of ['PUMP\nrm -r x', 'a\u0003', 'a\u001b[201~', 'a\u009b', 'a\rb']) {
    expect(isCopied(text, false)).toBe(false);
  }
  expect(isCopied('a\u0003\n', true)).toBe(false);
});

it('what joins emoji to one picture is none of them, and is one of them anywhere else', () => {
  const matched = (text: string): string[] => text.match(hidden) ?? [];
  const pictures = [
    '👨\u200d👩\u200d👧',
    '🏳\ufe0f\u200d🌈',
    '👩🏽\u200d🚀',
    '❤\ufe0f',
    '1\ufe0f\u20e3',
    '🤷🏻\u200d♀\ufe0f',
  ];
  expect(pictures.map(matched)).toEqual(pictures.map(() => []));
  expect(matched('pump\u200d7')).toEqual(['\u200d']);
  expect(matched('👨\u200d')).toEqual(['\u200d']);
  expect(matched('a\u200d👧')).toEqual(['\u200d']);
  expect(matched('👨\u200d\u200d👧')).toEqual(['\u200d', '\u200d']);
  expect(matched('❤\ufe0f\ufe0f')).toEqual(['\ufe0f']);
  expect(matched('1\ufe0f')).toEqual(['\ufe0f']);
  expect(matched('a\ufe0e')).toEqual(['\ufe0e']);
});
