import { expect, it } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import { DeviceMarks } from '../../../src/domain/devices/device-marks.ts';
import { joinFleets, joinRefusals, Refusals } from '../../../src/domain/devices/refusals.ts';

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
  for (let index = 0; index < 1_000; index += 1) {
    one.note(deviceKeyOf('FLEET001', String(index).padStart(10, '0')), refused('/a'), 4_000);
  }
  expect(one.isKnown(device)).toBe(false);
  expect(one.of(device).refused).toEqual([]);
});

it('a device that is refused for ever new reasons takes no more than its share, nor does a fleet, nor do more devices than there is room for', () => {
  const refusals = new Refusals();
  for (let number = 0; number < 100; number += 1) refusals.note(device, refused(`/${number}`), number);
  expect(refusals.of(device).refused.map(({ error }) => error?.path)).toEqual(
    Array.from({ length: 16 }, (_, index) => `/${84 + index}`),
  );
  const ofFleet = (fleetId: string, length: number) =>
    Array.from({ length }, (_, index) => deviceKeyOf(fleetId, String(index).padStart(10, '0')));
  const known = (devices: readonly DeviceKey[]) => devices.filter((one) => refusals.isKnown(one));
  const noteAll = (devices: readonly DeviceKey[]): void => {
    for (const one of devices) refusals.note(one, refused('/a'.repeat(1_000)), 1_000);
  };
  const others = ofFleet('FLEET001', 1_000);
  noteAll(others);
  expect(known([device, ...others])).toEqual(others);
  expect(refusals.of(others[0] ?? device).refused[0]?.error?.path).toHaveLength(256);
  const fleets = ['FLEET002', 'FLEET003', 'FLEET004', 'FLEET005'].map((fleetId) => ofFleet(fleetId, 1_024));
  for (const fleet of fleets) noteAll(fleet);
  expect(known(fleets.flat())).toEqual(fleets.flatMap((fleet) => fleet.slice(-1_000)));
  expect(known(others)).toEqual(others.slice(-96));
});

it('the devices of a fleet that were refused since a time are told over threads, and whether some were forgotten', () => {
  const marks = new DeviceMarks();
  const [one, other] = [new Refusals(marks), new Refusals(marks)];
  const second = deviceKeyOf('FLEET001', 'PUMP000008');
  const wrong = {
    route: 'POST /v1/heartbeat',
    code: 'unauthorized' as const,
    detail: 'device_secret_incorrect' as const,
    msg: '',
  };
  one.note(device, wrong, 1_000);
  other.note(device, refused('/celsius'), 2_000);
  one.note(second, wrong, 3_000);
  one.note(deviceKeyOf('FLEET002', 'PUMP000007'), wrong, 3_000);
  // Whatever is accepted of a device, its secret is right.
  other.noteAccepted(device, { route: 'GET /v1/mailbox/next' }, 4_000);
  const since = (sinceMs: number) =>
    joinFleets([one.ofFleet('FLEET001', sinceMs), other.ofFleet('FLEET001', sinceMs)], sinceMs);
  expect(since(1_000)).toMatchObject({
    devices: [
      { device: second, refusals: [{ lastMs: 3_000 }] },
      { device, refusals: [{ code: 'schema_mismatch' }, { code: 'unauthorized', acceptedMs: 4_000 }] },
    ],
    isFull: false,
  });
  expect(since(2_500).devices.map((found) => found.device)).toEqual([second]);
  for (let index = 0; index < 1_000; index += 1)
    one.note(deviceKeyOf('FLEET001', String(index).padStart(10, '0')), wrong, 5_000);
  expect(since(2_500)).toMatchObject({ isFull: true });
  expect(since(4_500)).toMatchObject({ isFull: false });
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
