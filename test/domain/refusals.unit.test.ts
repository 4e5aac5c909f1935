import { expect, it } from 'vitest';
import { deviceKeyOf } from '../../src/core/identity.ts';
import { joinRefusals, Refusals } from '../../src/domain/devices/refusals.ts';

const device = deviceKeyOf('FLEET001', 'PUMP000007');
const refused = (path: string) => ({
  route: 'POST /v1/datapoint/:schema_name',
  name: 'climate',
  code: 'schema_mismatch' as const,
  msg: 'The body does not match its schema.',
  error: { path, msg: 'must be number' },
});

it('equal refusals are counted, with the first and the last time, over threads too', () => {
  const [one, other] = [new Refusals(), new Refusals()];
  one.note(device, refused('/celsius'), 1_000);
  one.note(device, refused('/celsius'), 3_000);
  other.note(device, refused('/celsius'), 2_000);
  other.note(device, refused('/percent'), 4_000);
  expect(joinRefusals([...one.of(device), ...other.of(device)])).toEqual([
    { ...refused('/percent'), count: 1, firstMs: 4_000, lastMs: 4_000 },
    { ...refused('/celsius'), count: 3, firstMs: 1_000, lastMs: 3_000 },
  ]);
});

it('a device that is refused for ever new reasons takes no more than its share, nor do more devices than there is room for', () => {
  const refusals = new Refusals();
  for (let number = 0; number < 100; number += 1) refusals.note(device, refused(`/${number}`), number);
  expect(refusals.of(device).map(({ error }) => error?.path)).toEqual(
    Array.from({ length: 16 }, (_, index) => `/${84 + index}`),
  );
  const others = Array.from({ length: 4_096 }, (_, index) =>
    deviceKeyOf('FLEET001', String(index).padStart(10, '0')),
  );
  for (const other of others) refusals.note(other, refused('/a'.repeat(1_000)));
  expect([device, ...others].filter((one) => refusals.isKnown(one))).toEqual(others);
  expect(refusals.of(others[0] ?? device)[0]?.error?.path).toHaveLength(256);
});
