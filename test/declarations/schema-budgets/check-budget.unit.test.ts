import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Fleets } from '../../../src/declarations/fleet.ts';
import { CheckCost } from '../../../src/declarations/schema-budgets/check-budget.ts';
import { unwatched } from '../../../src/declarations/schemas/schema.ts';

/** Of whose items each is held against 900 values, the last of which it equals. */
const value = (last: number) => ({ a: 1, b: 1, c: 1, last });
const costly = {
  type: 'object',
  properties: { list: { items: { enum: Array.from({ length: 900 }, (_, index) => value(index)) } } },
};
const costlyBody = { list: Array.from({ length: 1_500 }, () => value(899)) };
const bytes = JSON.stringify(costlyBody).length;

function fleets(schemaCheckMillisecondsPerSecondMax: number): Fleets {
  const schemas = [
    { kind: 'message' as const, name: 'costly', text: JSON.stringify(costly) },
    { kind: 'message' as const, name: 'usual', text: '{"type":"object"}' },
    { kind: 'message' as const, name: 'new', text: JSON.stringify({ ...costly, title: 'new' }) },
  ];
  const snapshots = ['GREEDY00', 'MODEST00'].map((fleetId) => ({
    fleet: { fleetId, name: '', createdAtMs: 1 },
    schemas,
  }));
  const settings = { current: { ...unwatched.settings.current, schemaCheckMillisecondsPerSecondMax } };
  return new Fleets(snapshots, { settings, defersCompiling: true, onDisabled() {} });
}

describe('the time of a thread that checks of one fleet may take', () => {
  beforeEach(() => {
    // A clock of its own, so that no busy machine counts.
    vi.useFakeTimers({ toFake: ['performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('is bounded: what could take long is told to come again, whatever else is served', () => {
    const known = fleets(10);
    const check = (fleetId: string, name: string, body = costlyBody, length = bytes) =>
      known.schema(fleetId, 'message', name).check(body, length);
    check('GREEDY00', 'costly');
    known.checksOf('GREEDY00')?.spendCompilation(1_055);
    const refusal = expect.objectContaining({
      code: 'unavailable',
      message: expect.stringContaining('schemaCheckMillisecondsPerSecondMax'),
      options: { retryAfterSeconds: 5, msg: expect.anything() },
    });
    expect(() => check('GREEDY00', 'costly')).toThrow(refusal);
    expect(() => check('GREEDY00', 'new', { list: [] }, 11)).toThrow(refusal);
    check('GREEDY00', 'costly', { list: [] }, 11);
    check('GREEDY00', 'usual');
    check('MODEST00', 'costly');
    vi.advanceTimersByTime(5_001);
    check('GREEDY00', 'costly');
  });

  it('is counted beyond what a check usually takes, and not at all without a limit', () => {
    const known = fleets(10);
    const checks = known.checksOf('GREEDY00');
    for (let n = 0; n < 10_000; n += 1) {
      checks?.spendCompilation(5);
      checks?.spendCheck(new CheckCost(), 0.1, 100);
      checks?.spendCheck(new CheckCost(), 1.3, 65_536);
    }
    expect(checks?.waitSeconds).toBe(0);
    for (let n = 0; n < 600; n += 1) checks?.spendCheck(new CheckCost(), 2, 1_200);
    expect(checks?.waitSeconds).toBeGreaterThan(0);
    const unlimited = fleets(0);
    unlimited.checksOf('GREEDY00')?.spendCompilation(1_000_000);
    expect(unlimited.checksOf('GREEDY00')?.waitSeconds).toBe(0);
  });
});

describe('the time of a thread that parsing the bodies of one fleet may take', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** A body of so many kilobytes that takes so long to parse. */
  const parse = (known: Fleets, fleetId: string, kilobytes: number, milliseconds: number): string =>
    known.parse(fleetId, Buffer.alloc(kilobytes * 1_000), () => {
      vi.advanceTimersByTime(milliseconds);
      return 'parsed';
    });
  const refusal = expect.objectContaining({
    code: 'unavailable',
    message: expect.stringContaining('schemaCheckMillisecondsPerSecondMax'),
  });

  it('is bounded: while more was taken none but small ones are parsed, and those of other fleets', () => {
    const known = fleets(10);
    let parsed = 0;
    const flood = (): void => {
      for (; parsed < 1_000; parsed += 1) parse(known, 'GREEDY00', 64, 8);
    };
    expect(flood).toThrow(refusal);
    // A second saved up, at 6 ms each beyond what is usual for so many bytes.
    expect(parsed).toBeGreaterThan(150);
    expect(parsed).toBeLessThan(200);
    expect(() => parse(known, 'GREEDY00', 2, 0)).toThrow(refusal);
    expect(parse(known, 'GREEDY00', 1, 8)).toBe('parsed');
    expect(parse(known, 'MODEST00', 64, 8)).toBe('parsed');
    vi.advanceTimersByTime(5_000);
    expect(parse(known, 'GREEDY00', 64, 8)).toBe('parsed');
  });

  it('is counted whatever comes of the body', () => {
    const known = fleets(10);
    const spoilt = (): void => {
      const body = Buffer.alloc(64_000);
      const parseSpoilt = (): never => {
        vi.advanceTimersByTime(8);
        throw new SyntaxError('spoilt');
      };
      known.parse('GREEDY00', body, parseSpoilt);
    };
    for (let n = 0; n < 160; n += 1) expect(spoilt).toThrow('spoilt');
    for (let n = 0; n < 40; n += 1) expect(spoilt).toThrow();
    expect(spoilt).toThrow(refusal);
  });

  it('is not used up by bodies of which one in ten is interrupted, nor by costly checks', () => {
    const known = fleets(10);
    for (let n = 0; n < 10_000; n += 1) parse(known, 'MODEST00', 64, n % 10 === 0 ? 1_000 : 0.6);
    known.checksOf('MODEST00')?.spendCompilation(100_000);
    expect(parse(known, 'MODEST00', 64, 0.6)).toBe('parsed');
  });

  it('holds up the filters of actions, and is not bounded without a limit', () => {
    const known = fleets(10);
    for (let n = 0; n < 190; n += 1) parse(known, 'GREEDY00', 64, 7);
    expect(known.checksOf('GREEDY00')?.waitSeconds).toBe(0);
    expect(() => {
      for (let n = 0; n < 100; n += 1) parse(known, 'GREEDY00', 64, 8);
    }).toThrow(refusal);
    expect(known.checksOf('GREEDY00')?.waitSeconds).toBeGreaterThan(0);
    const unlimited = fleets(0);
    for (let n = 0; n < 1_000; n += 1) parse(unlimited, 'GREEDY00', 64, 10_000);
  });
});

describe('what the checks of a schema take', () => {
  it('is high once several took long, not after one, which may have been interrupted', () => {
    const cost = new CheckCost();
    for (let n = 0; n < 100; n += 1) cost.add(0);
    cost.add(50);
    expect(cost.isHigh).toBe(false);
    for (let n = 0; n < 4; n += 1) cost.add(2);
    expect(cost.isHigh).toBe(true);
    for (let n = 0; n < 100; n += 1) cost.add(0);
    expect(cost.isHigh).toBe(false);
  });

  it('decides, while time is owed, which bodies wait, however short they are', () => {
    const known = fleets(10);
    const checks = known.checksOf('GREEDY00');
    const cost = new CheckCost();
    for (let n = 0; n < 1_000; n += 1) checks?.spendCheck(cost, 4, 1_200);
    expect(() => checks?.admitCheck(cost, () => 1, 1_200)).toThrow('schemaCheckMillisecondsPerSecondMax');
    checks?.admitCheck(new CheckCost(), () => 1, 1_200);
  });
});

it('a check that takes long is counted', () => {
  const known = fleets(1);
  const schema = known.schema('GREEDY00', 'message', 'costly');
  const check = () => {
    for (let n = 0; n < 1_000; n += 1) schema.check(costlyBody, bytes);
  };
  expect(check).toThrow('schemaCheckMillisecondsPerSecondMax');
});
