import { afterEach, expect, it, vi } from 'vitest';
import { SchemaChecker } from '../../../src/declarations/schema-checks/schema-checker.ts';
import { schemaCheckThread } from '../../harness/features/schema-checks.ts';

const settings = (schemaChecksMax: number) => ({
  current: { schemaStepsMax: 1_000, schemaPatternStatesMax: 60_000, schemaChecksMax },
});
let checker: SchemaChecker;
afterEach(() => checker.close());

/** Some milliseconds of work, so that checks do wait. */
const large = JSON.stringify({
  properties: Object.fromEntries(Array.from({ length: 500 }, (_, n) => [n, { type: 'string' }])),
});

it('fleets take turns, however many checks one of them has', async () => {
  checker = new SchemaChecker(settings(100), schemaCheckThread);
  const order: string[] = [];
  const check = async (fleetId: string) => {
    await checker.check(fleetId, large);
    order.push(fleetId);
  };
  const ofMany = Array.from({ length: 30 }, () => check('GREEDY00'));
  await Promise.all([...ofMany, check('MODEST00')]);
  expect(order.indexOf('MODEST00')).toBeLessThanOrEqual(2);
});

it('a fleet beyond its share is told so, and another is served', async () => {
  checker = new SchemaChecker(settings(10), schemaCheckThread);
  const all = await Promise.allSettled([
    ...Array.from({ length: 30 }, () => checker.check('GREEDY00', large)),
    checker.check('MODEST00', large),
  ]);
  const refused = all.filter((one) => one.status === 'rejected').map(({ reason }) => reason);
  expect(refused).toHaveLength(25);
  for (const reason of refused)
    expect(reason).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/schemaChecksMax/) });
  expect(all.at(-1)?.status).toBe('fulfilled');
});

it('a check that does not end, or ends its thread, is given up by itself', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const never = new URL('data:text/javascript,setInterval(() => {}, 1000)');
    checker = new SchemaChecker(settings(10), never);
    const first = expect(checker.check('GREEDY00', '{}')).rejects.toThrow(/not checked within 60 s/);
    const second = expect(checker.check('GREEDY00', '{}')).rejects.toThrow(/not checked within 60 s/);
    await vi.advanceTimersByTimeAsync(60_000);
    await first;
    await vi.advanceTimersByTimeAsync(60_000);
    await second;
  } finally {
    vi.useRealTimers();
  }
  await checker.close();
  checker = new SchemaChecker(settings(10), new URL('data:text/javascript,process.exit()'));
  await expect(checker.check('GREEDY00', '{}')).rejects.toMatchObject({ code: 'unavailable' });
});
