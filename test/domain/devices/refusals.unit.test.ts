import { expect, it } from 'vitest';
import { deviceKeyOf } from '../../../src/core/identity.ts';
import { DeviceMarks } from '../../../src/domain/devices/device-marks.ts';
import { joinRefusals, Refusals } from '../../../src/domain/devices/refusals.ts';

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
  expect(joinRefusals([one.of(device), other.of(device)])).toEqual([
    { ...refused('/percent'), count: 1, firstMs: 4_000, lastMs: 4_000 },
    { ...refused('/celsius'), count: 3, firstMs: 1_000, lastMs: 3_000 },
  ]);
});

it('what is accepted of a device that was refused, on any thread, is known by its kind, and of no other device', () => {
  const marks = new DeviceMarks();
  const [one, other] = [new Refusals(marks), new Refusals(marks)];
  const { route, name } = refused('');
  expect(other.wasRefused(device)).toBe(false);
  one.note(device, refused('/celsius'), 1_000);
  expect(other.wasRefused(device)).toBe(true);
  other.noteAccepted(device, { route, name: 'energy' }, 2_000);
  expect(joinRefusals([one.of(device), other.of(device)])).toMatchObject([{ lastMs: 1_000 }]);
  other.noteAccepted(device, { route, name }, 3_000);
  one.noteAccepted(device, { route, name }, 2_500);
  expect(joinRefusals([one.of(device), other.of(device)])).toMatchObject([{ acceptedMs: 3_000 }]);
  // Room for others: it is forgotten, with its mark.
  for (let index = 0; index < 4_096; index += 1) {
    one.note(deviceKeyOf('FLEET001', String(index).padStart(10, '0')), refused('/a'), 4_000);
  }
  expect(one.isKnown(device)).toBe(false);
  expect(one.of(device).refused).toEqual([]);
});

it('a device that is refused for ever new reasons takes no more than its share, nor do more devices than there is room for', () => {
  const refusals = new Refusals();
  for (let number = 0; number < 100; number += 1) refusals.note(device, refused(`/${number}`), number);
  expect(refusals.of(device).refused.map(({ error }) => error?.path)).toEqual(
    Array.from({ length: 16 }, (_, index) => `/${84 + index}`),
  );
  const others = Array.from({ length: 4_096 }, (_, index) =>
    deviceKeyOf('FLEET001', String(index).padStart(10, '0')),
  );
  for (const other of others) refusals.note(other, refused('/a'.repeat(1_000)));
  expect([device, ...others].filter((one) => refusals.isKnown(one))).toEqual(others);
  expect(refusals.of(others[0] ?? device).refused[0]?.error?.path).toHaveLength(256);
});

it('what is refused for a rate is counted beside what is accepted, over threads, and logged once a minute', () => {
  const marks = new DeviceMarks();
  const [one, other] = [new Refusals(marks), new Refusals(marks)];
  const limited = { route: 'POST /v1/heartbeat', code: 'rate_limited' as const, msg: 'Too many requests.' };
  const lines: (number | undefined)[] = [];
  for (let number = 0; number < 100; number += 1) {
    one.note(device, limited, 1_000 + number);
    lines.push(one.countLimited(device, 1_000 + number));
  }
  for (let number = 0; number < 25; number += 1) other.noteAccepted(device, limited, 2_000);
  lines.push(one.countLimited(device, 61_001));
  expect(lines.filter((line) => line !== undefined)).toEqual([1, 100]);
  const requestsAt = (nowMs: number) =>
    joinRefusals([one.of(device, nowMs), other.of(device, nowMs)])[0]?.requests;
  expect(requestsAt(61_001)).toEqual({ limited: 101, accepted: 25 });
  expect(requestsAt(400_000)).toEqual({ limited: 101, accepted: 25 });
  expect(requestsAt(2_000_000)).toEqual({ limited: 0, accepted: 0 });
  // However many devices are at their limits, the lines of a minute are bounded.
  const others = Array.from({ length: 100 }, (_, index) =>
    deviceKeyOf('FLEET001', String(index).padStart(10, '0')),
  );
  const logged = others.filter((key) => one.countLimited(key, 3_000_000) !== undefined);
  expect(logged).toHaveLength(10);
});
