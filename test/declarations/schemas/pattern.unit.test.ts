import fc from 'fast-check';
import { RE2JS } from 're2js';
import { describe, expect, it, vi } from 'vitest';
import { Fleets } from '../../../src/declarations/fleet.ts';
import { IdPattern } from '../../../src/declarations/id-pattern.ts';
import { checkSchema } from '../../../src/declarations/schemas/check-schema.ts';
import { Pattern, patternStates } from '../../../src/declarations/schemas/pattern.ts';
import { unwatched } from '../../../src/declarations/schemas/schema.ts';

const limits = { schemaStepsMax: 1_000, schemaPatternStatesMax: 10_000 };
const ofPattern = (pattern: string, more: object = {}) => ({ properties: { a: { pattern, ...more } } });

const part = fc.constantFrom(
  ...[
    'a',
    'é',
    '😀',
    '.',
    '^',
    '$',
    '/',
    ']',
    '}',
    '{',
    '-',
    '()',
    '(?:)',
    '(?i)',
    '(?-i)',
    '(?s)',
    '*',
    '+?',
  ],
  ...[
    '\\d',
    '\\W',
    '\\b',
    '\\.',
    '\\/',
    '\\c',
    '\\cA',
    '\\p{L}',
    '\\PL',
    '\\p{Cn}',
    '\\x{41}',
    '\\x41',
    '\\u0041',
  ],
  ...[
    '\\101',
    '\\Qab{2}\\E',
    '\\Q(\\E',
    '\\Qab',
    'a{,3}',
    '{00}',
    'x{01}',
    '{2',
    '[a-z]',
    '[^a-z]',
    '[]a]',
    '[^]a]',
  ],
  ...[
    '[[:alpha:]x]',
    '[\\p{L}\\d]',
    '[A-\\x{1e942}]',
    '[[a]',
    '[a\\]b]',
    '[\\Q]',
    '[a-c-e]',
    '[-a]',
    '[a-]',
    '[[:a]',
  ],
);
const open = fc.constantFrom('(', '(?:', '(?i:', '(?s-i:', '(?P<n>', '(?<n>');
const quantifier = fc.constantFrom(
  ...['*', '+', '?', '*?', '{0}', '{1}', '{2}', '{0,0}', '{0,}', '{1,}', '{3,}', '{2,5}', '{2,4}?', '{00}'],
  ...['{0,30}', '{100}', '{0,1000}', '{,9}'],
);
const { expression } = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 8, withCrossShrink: true },
    part,
    fc.tuple(tie('expression'), tie('expression')).map(([one, other]) => one + other),
    fc.tuple(tie('expression'), tie('expression')).map(([one, other]) => `${one}|${other}`),
    fc.tuple(open, tie('expression')).map(([start, inner]) => `${start}${inner})`),
    fc.tuple(tie('expression'), quantifier).map(([one, times]) => one + times),
    fc.tuple(tie('expression'), quantifier).map(([one, times]) => `(?:${one})${times}`),
  ),
}));

describe('a pattern', () => {
  it('has at most the states that are counted without compiling it', () => {
    let compiled = 0;
    fc.assert(
      fc.property(expression, (source) => {
        const counted = patternStates(source);
        if (counted > 5_000) return;
        let pattern: Pattern;
        try {
          pattern = new Pattern(source);
        } catch {
          return;
        }
        compiled += 1;
        expect(pattern.states).toBeLessThanOrEqual(counted);
      }),
      { numRuns: 3_000 },
    );
    expect(compiled).toBeGreaterThan(1_000);
  });

  it('keeps little of the texts it meets, whatever they are', () => {
    const text = () => Array.from({ length: 1_200 }, () => (Math.random() < 0.5 ? 'a' : 'b')).join('');
    const patterns = Array.from({ length: 40 }, (_, n) => new Pattern(`[ab]*a[ab]{${16 + (n % 4)}}[c-z]`));
    const heapBytes = () => process.memoryUsage().heapUsed;
    const before = heapBytes();
    for (const pattern of patterns) for (let n = 0; n < 20; n += 1) expect(pattern.test(text())).toBe(false);
    // Of each the engine would keep 8 MB by its own default.
    expect(heapBytes() - before).toBeLessThan(150_000_000);
  });

  it('is refused, or matches, as the engine has it by itself', () => {
    const texts = ['', 'a', 'ab', 'A', 'aa-a', '(', '{2}', 'é😀', '\n'];
    fc.assert(
      fc.property(expression, fc.constantFrom(...texts), (source, text) => {
        if (patternStates(source) > 1_000) return;
        const whether = (test: () => boolean): boolean | undefined => {
          try {
            return test();
          } catch {
            return undefined;
          }
        };
        const alone = whether(() => RE2JS.compile(RE2JS.translateRegExp(source)).test(text));
        expect(whether(() => new Pattern(source).test(text))).toBe(alone);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['many repetitions', `^${'a{0,1000}'.repeat(400)}$`],
    ['nested repetitions', `^${'(a{0,10}){0,10}'.repeat(4_000)}$`],
    ['classes of Unicode', `^${'\\p{L}{0,300}'.repeat(400)}$`],
    ['negated classes in any case', `(?i:^${'[^a-z]{0,200}'.repeat(1_000)}$)`],
    ['ranges in any case', `(?i)${'[A-\\x{1e942}]'.repeat(100)}`],
    ['classes within a class', `[${'\\pL'.repeat(1_300)}]`],
    ['thousands of parts', `^${'a?'.repeat(30_000)}$`],
  ])('of %s is refused by its states, before it is compiled', (_, pattern) => {
    const reason = /\/properties\/a\/pattern may have \d+ states, more than 10000 \(schemaPatternStatesMax\)/;
    expect(() => checkSchema(ofPattern(pattern, { maxLength: 1 }), limits)).toThrow(reason);
    expect(() => new IdPattern(pattern)).toThrow(/too long/);
  });

  it('counts together with the others of its schema, equal ones once', () => {
    const schema = (sources: string[]) => ({
      properties: { a: { items: { anyOf: sources.map((pattern) => ({ pattern, maxLength: 1 })) } } },
    });
    const many = (count: number, source: (n: number) => string) =>
      schema(Array.from({ length: count }, (_, n) => source(n)));
    const lenient = { ...limits, schemaStepsMax: 1_000_000 };
    const reason =
      /its patterns may have \d+ states, .*, \d+ of them by \/properties\/a\/items\/anyOf\/12\/pattern/;
    expect(() =>
      checkSchema(
        many(13, (n) => `^a{900}b{${n}}$`),
        lenient,
      ),
    ).toThrow(reason);
    expect(() =>
      checkSchema(
        many(100, () => '^a{900}$'),
        lenient,
      ),
    ).not.toThrow();
    const names = { patternProperties: { [`^${'a{0,1000}'.repeat(6)}`]: true } };
    expect(() => checkSchema(names, lenient)).toThrow(/\/patternProperties\/\^a\{0,1000\}/);
  });

  it.each([
    ['a UUID', '^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$', 36],
    [
      'a time',
      '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$',
      40,
    ],
    [
      'an e-mail',
      "^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$",
      254,
    ],
    [
      'a semantic version',
      '^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)(?:-[0-9A-Za-z.-]+)?(?:\\+[0-9A-Za-z.-]+)?$',
      64,
    ],
    ['an IPv4 address', '^((25[0-5]|2[0-4]\\d|1?\\d?\\d)\\.){3}(25[0-5]|2[0-4]\\d|1?\\d?\\d)$', 15],
    ['a MAC address', '^([0-9A-F]{2}:){5}[0-9A-F]{2}$', 17],
    ['base64', '^[A-Za-z0-9+/]*={0,2}$', 4_096],
    ['a kilobyte of base64', '^[A-Za-z0-9+/]{0,1000}$', 1_000],
    ['any text of a kilobyte', '^.{0,1000}$', 1_000],
    ['a name', '^\\p{L}[\\p{L}\\p{M}\\p{N} .’-]{0,254}$', 255],
  ])('of typical use is accepted: %s', (_, pattern, maxLength) => {
    expect(checkSchema(ofPattern(pattern, { maxLength }), limits).steps).toBeLessThan(1_000);
  });

  it('with more repetitions than the engine has is told what to say instead', () => {
    const schema = ofPattern('^[A-Za-z0-9+/]{0,4096}$', { maxLength: 4_096 });
    expect(() => checkSchema(schema, limits)).toThrow(
      /invalid repeat count.*over 1000, say \* or \+ and maxLength/,
    );
  });
});

describe('what a fleet may compile at once on a thread', () => {
  const fleet = (fleetId: string, count: number) => ({
    fleet: { fleetId, name: '', createdAtMs: 1 },
    schemas: Array.from({ length: count }, (_, n) => ({
      kind: 'message' as const,
      name: `s${n}`,
      text: JSON.stringify(ofPattern(`(${'a?'.repeat(1_900 + n)})`, { maxLength: 1 })),
    })),
  });
  const settings = { current: { ...unwatched.settings.current, schemaPatternStatesMax: 10_000 } };

  it('is one of the largest schemas a second; others are told to come again, and other fleets are served', async () => {
    const disabled: string[] = [];
    const fleets = new Fleets([fleet('GREEDY00', 31), fleet('MODEST00', 1)], {
      settings,
      defersCompiling: true,
      onDisabled: ({ name }) => disabled.push(name),
    });
    const taken = () =>
      Array.from({ length: 31 }, (_, n) => {
        try {
          fleets.schema('GREEDY00', 'message', `s${n}`).check({ a: 'a' }, 9);
          return true;
        } catch (error) {
          expect(error).toMatchObject({ code: 'unavailable', options: { retryAfterSeconds: 1 } });
          expect(String(error)).toMatch(/schemaPatternStatesMax/);
          return false;
        }
      }).filter((isTaken) => isTaken).length;
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      expect(taken()).toBe(1);
      fleets.schema('MODEST00', 'message', 's0').check({ a: 'a' }, 9);
      // A pattern once compiled stays so.
      expect(taken()).toBe(1);
      vi.advanceTimersByTime(1_500);
      expect(taken()).toBe(2);
    } finally {
      vi.useRealTimers();
    }
    expect(disabled).toEqual([]);
  });
});
