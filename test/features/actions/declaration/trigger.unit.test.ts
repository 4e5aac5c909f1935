import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { deviceKeyOf } from '../../../../src/core/identity.ts';
import { generateUuid } from '../../../../src/core/uuid.ts';
import { CheckBudget } from '../../../../src/declarations/schema-budgets/check-budget.ts';
import type { Action, ActionVersion } from '../../../../src/features/actions/declaration/action.ts';
import { ParsedPayloads } from '../../../../src/features/actions/declaration/parsed-payloads.ts';
import { Trigger } from '../../../../src/features/actions/declaration/trigger.ts';

const fleetId = 'FLEET001';
const on = [{ kind: 'message' as const, schema: 'opened' }];
const filter = { payload: { required: ['a'] } };

/** The triggers of so many actions of one fleet, which share what they parse. */
function triggersOf(count: number, checks: CheckBudget): Trigger[] {
  const payloads = new ParsedPayloads();
  const [action, version] = [{ fleetId } as Action, { on, filter } as unknown as ActionVersion];
  return Array.from({ length: count }, () => new Trigger(action, version, undefined, { checks, payloads }));
}

const recordOf = (payload: string) => ({
  position: 0,
  id: generateUuid(),
  device: deviceKeyOf(fleetId, 'PUMP000007'),
  kind: 'message' as const,
  schema: 'opened',
  payload: Buffer.from(payload),
  storedAtMs: 0,
  isRelocated: false,
});

const budget = () => new CheckBudget({ current: { schemaCheckMillisecondsPerSecondMax: 10 } });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it('a payload is parsed once, however many filters it is held against, while there is room', () => {
  const triggers = triggersOf(20, budget());
  const matches = (record: ReturnType<typeof recordOf>): boolean[] =>
    triggers.map((trigger) => trigger.matches(record, undefined));
  const large = (member: string): string => `{"${member}":"${'x'.repeat(60_000)}"}`;
  const [first, second] = [recordOf(large('a')), recordOf(large('b'))];
  const others = Array.from({ length: 40 }, () => recordOf(large('a')));
  const parse = vi.spyOn(JSON, 'parse');
  const parsed = (): number => parse.mock.calls.filter(([text]) => text.length > 60_000).length;
  expect([matches(first), matches(second), parsed()]).toEqual([
    Array(20).fill(true),
    Array(20).fill(false),
    2,
  ]);
  for (const other of others) matches(other);
  matches(first);
  expect(parsed()).toBe(2 + 40 + 1);
});

it('the time of parsing counts for the filters of the fleet, which then wait', () => {
  const [trigger] = triggersOf(1, budget()) as [Trigger];
  const parse = JSON.parse;
  vi.spyOn(JSON, 'parse').mockImplementation((text) => {
    vi.advanceTimersByTime(8);
    return parse(text);
  });
  const record = () => recordOf(`{"a":"${'x'.repeat(64_000)}"}`);
  let matched = 0;
  for (; !trigger.mustWait && matched < 1_000; matched += 1)
    expect(trigger.matches(record(), undefined)).toBe(true);
  // A second is saved up, of which each takes 6 ms beyond the usual.
  expect(matched).toBeGreaterThan(150);
  expect(matched).toBeLessThan(200);
});
