import { afterEach, describe, expect, it, vi } from 'vitest';
import { Schema, unwatched } from '../../../../src/declarations/schemas/schema.ts';

/** Holds a body against a schema that was stored when more was allowed. */
function check(schema: object, body: Record<string, unknown>, schemaStepsMax = 10): void {
  const settings = { current: { ...unwatched.settings.current, schemaStepsMax } };
  new Schema(JSON.stringify(schema), { ...unwatched, settings }).check(body, 65_536);
}

const tooLong = expect.objectContaining({
  code: 'schema_mismatch',
  options: { errors: [{ path: '', msg: 'takes too long to check (schemaStepsMax)' }] },
});

/** Matches all that follows, but is not skipped as `true` is. */
const any = { type: ['object', 'number', 'string'] };
const members = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`m${index}`, 1]));
const items = Array.from({ length: 1_000 }, () => ({}));

describe('the check of a body ends after so many operations, whatever it spends them on', () => {
  it.each<[string, object, unknown]>([
    ['items', { items: any }, items],
    ['items that something contains', { contains: {}, minContains: 1_000 }, items],
    ['items that nothing looked at', { unevaluatedItems: any }, items],
    ['members', { additionalProperties: any }, members],
    ['members that nothing looked at', { unevaluatedProperties: any }, members],
    ['noting what was looked at', { patternProperties: { m: true }, unevaluatedProperties: false }, members],
    ['names', { propertyNames: any }, members],
    ['names that a pattern fits', { patternProperties: { m: {} } }, members],
    ['names that no pattern fits', { patternProperties: { k: {} }, additionalProperties: {} }, members],
    ['texts that a pattern fits', { pattern: 'a' }, 'a'.repeat(10_000)],
  ])('%s', (_, schema, value) => {
    const allOf = Array.from({ length: 300 }, () => ({ $ref: '#/$defs/one' }));
    const repeated = { $defs: { one: schema }, properties: { a: { allOf } } };
    expect(() => check(repeated, { a: value })).toThrow(tooLong);
    check(repeated, { a: value }, 1_000_000);
  });

  it('references that lead to each other', () => {
    const chain = Object.fromEntries(
      Array.from({ length: 300 }, (_, index) => [index, index < 299 ? { $ref: `#/$defs/${index + 1}` } : {}]),
    );
    const schema = { $defs: chain, properties: { a: { items: { $ref: '#/$defs/0' } } } };
    expect(() => check(schema, { a: items })).toThrow(tooLong);
    check(schema, { a: items.slice(0, 100) });
  });

  it('finding and reporting what does not match, together', () => {
    const alternatives = { anyOf: [...Array.from({ length: 40 }, () => ({ type: 'string' })), true] };
    const schema = { properties: { a: { items: alternatives } }, allOf: [{ required: ['b'] }] };
    const missing = [{ path: '', msg: "must have required property 'b'" }];
    const mismatch = expect.objectContaining({ options: { errors: missing } });
    expect(() => check(schema, { a: items.slice(500) })).toThrow(mismatch);
    expect(() => check(schema, { a: items })).toThrow(tooLong);
  });
});

describe('a check that took longer than schemaCheckMillisecondsMax', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([
    [9, 1, false],
    [19, 2, true],
    [21, 1, true],
  ])('of 10 ms, %i: is made %i times, and disables the schema: %s', (milliseconds, made, isDisabled) => {
    // A clock that nothing moves but the check itself.
    vi.useFakeTimers({ toFake: ['performance'] });
    let checks = 0;
    const body = {
      get a(): string {
        checks += 1;
        vi.advanceTimersByTime(milliseconds);
        return '';
      },
    };
    const disabled: string[] = [];
    const settings = { current: { ...unwatched.settings.current, schemaCheckMillisecondsMax: 10 } };
    const watch = { settings, onDisabled: (reason: string) => disabled.push(reason) };
    const schema = new Schema(JSON.stringify({ additionalProperties: { type: 'string' } }), watch);
    schema.check(body, 10);
    expect([checks, disabled.length === 1]).toEqual([made, isDisabled]);
  });
});
