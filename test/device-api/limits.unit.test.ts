import { afterEach, expect, it, vi } from 'vitest';
import { clientAddressOf, clientAddressText, parseClientAddress } from '../../src/core/address.ts';
import { monotonicSeconds } from '../../src/core/clock.ts';
import { type DeviceKey, deviceKeyOf } from '../../src/core/identity.ts';
import { allocateLockouts, Lockouts } from '../../src/device-api/auth/lockouts.ts';
import { allocateRates, burstSeconds, RequestRates } from '../../src/device-api/limits/request-rates.ts';

const limits = { unauthorizedMax: 10, unauthorizedWindowSeconds: 60, lockoutSecondsMax: 900 };

function deviceNamed(number: number): DeviceKey {
  return deviceKeyOf('GARDEN01', String(number).padStart(10, '0'));
}

function failAt(lockouts: Lockouts, device: DeviceKey, address: string, times: number): void {
  for (let i = 0; i < times; i += 1) lockouts.failed(device, { address });
}

function isLocked(lockouts: Lockouts, device: DeviceKey, address: string): boolean {
  try {
    lockouts.check(device, lockouts.fingerprint(device), { address });
    return false;
  } catch {
    return true;
  }
}

afterEach(() => {
  vi.useRealTimers();
});

it('D6: workers count a pair together, and 9 failures lock out nobody', () => {
  const memory = allocateLockouts('seed');
  const [one, other] = [new Lockouts(memory, { current: limits }), new Lockouts(memory, { current: limits })];
  const device = deviceNamed(1);
  failAt(one, device, '192.0.2.1', 5);
  failAt(other, device, '192.0.2.1', 4);
  expect(isLocked(one, device, '192.0.2.1')).toBe(false);
  failAt(other, device, '192.0.2.1', 1);
  expect([isLocked(one, device, '192.0.2.1'), isLocked(other, device, '192.0.2.1')]).toEqual([true, true]);
  expect(isLocked(one, device, '192.0.2.2')).toBe(false);
});

it('D6: a flood of other pairs locks out no device that did not fail, in the memory there is', () => {
  const lockouts = new Lockouts(allocateLockouts('seed'), { current: limits });
  for (let i = 0; i < 30_000; i += 1) failAt(lockouts, deviceNamed(i), '192.0.2.1', 10);
  let locked = 0;
  let lockedForOthers = 0;
  for (let i = 0; i < 30_000; i += 1) {
    if (isLocked(lockouts, deviceNamed(i), '192.0.2.2')) lockedForOthers += 1;
    if (isLocked(lockouts, deviceNamed(50_000 + i), '192.0.2.1')) lockedForOthers += 1;
    if (isLocked(lockouts, deviceNamed(i), '192.0.2.1')) locked += 1;
  }
  expect(lockedForOthers).toBe(0);
  // Some sets were full, and forgot the oldest.
  expect(locked).toBeGreaterThan(29_000);
  const addressesOf = (deviceId: string): string[] =>
    lockouts.list({ fleetId: 'GARDEN01', deviceId }, '', 9).items.map(({ address }) => address);
  expect(addressesOf('0000029999')).toEqual(['192.0.2.1']);
  expect(addressesOf('0000050000')).toEqual([]);
});

it('D6: a lockout is twice as long as the one before, up to 15 minutes, and is forgotten as long after', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const lockouts = new Lockouts(allocateLockouts('seed'), { current: limits });
  const device = deviceNamed(1);
  const waits: number[] = [];
  failAt(lockouts, device, '192.0.2.1', 9);
  for (let i = 0; i < 6; i += 1) {
    failAt(lockouts, device, '192.0.2.1', 1);
    // Looks between the seconds: at the very end of a lockout, sums of floats are on either side of it.
    vi.advanceTimersByTime(500);
    let seconds = 0;
    for (; isLocked(lockouts, device, '192.0.2.1'); seconds += 1) vi.advanceTimersByTime(1_000);
    waits.push(seconds);
  }
  expect(waits).toEqual([60, 120, 240, 480, 900, 900]);
  vi.advanceTimersByTime(901_000);
  failAt(lockouts, device, '192.0.2.1', 9);
  expect(isLocked(lockouts, device, '192.0.2.1')).toBe(false);
});

it('D6: a lockout is listed with whom it concerns and until when, and lifted for all workers', () => {
  const memory = allocateLockouts('seed');
  const [one, other] = [new Lockouts(memory, { current: limits }), new Lockouts(memory, { current: limits })];
  const [device, neighbour] = [deviceNamed(1), deviceNamed(2)];
  const site = '20010db800000001/64';
  failAt(one, device, '192.0.2.1', 9);
  expect(other.list({}, '', 9)).toEqual({ items: [], next: null });
  failAt(one, device, '192.0.2.1', 1);
  failAt(one, device, site, 10);
  failAt(one, neighbour, '192.0.2.1', 10);
  for (let i = 0; i < 10; i += 1) one.failed('POST /v1/claim' as DeviceKey, { address: '192.0.2.1' }, '');
  const addressesOf = (deviceId: string): string[] =>
    other.list({ fleetId: 'GARDEN01', deviceId }, '', 9).items.map(({ address }) => address);
  expect(addressesOf('0000000001').sort()).toEqual(['192.0.2.1', site]);
  const first = other.list({}, '', 3);
  expect(first.items).toHaveLength(3);
  const rest = other.list({}, first.next ?? '', 3);
  expect(rest).toMatchObject({ next: null, items: [{}] });
  const all = [...first.items, ...rest.items];
  expect(all.filter(({ fleetId }) => fleetId === undefined)).toMatchObject([{ address: '192.0.2.1' }]);
  for (const { untilMs } of all) expect(untilMs - Date.now()).toBeGreaterThan(55_000);
  expect(other.lift({ deviceId: '0000000001', address: '192.0.2.1' })).toBe(1);
  expect(isLocked(one, device, '192.0.2.1')).toBe(false);
  expect(isLocked(one, device, site)).toBe(true);
  // It is as if there had been none: the next wrong secret does not lock it out again.
  failAt(one, device, '192.0.2.1', 9);
  expect(isLocked(one, device, '192.0.2.1')).toBe(false);
  expect(other.lift({})).toBe(3);
  expect(isLocked(one, neighbour, '192.0.2.1')).toBe(false);
});

it('D6: 0 switches it off', () => {
  const lockouts = new Lockouts(allocateLockouts('seed'), { current: { ...limits, unauthorizedMax: 0 } });
  failAt(lockouts, deviceNamed(1), '192.0.2.1', 1_000);
  expect(isLocked(lockouts, deviceNamed(1), '192.0.2.1')).toBe(false);
});

it('D7: a bucket holds two seconds’ worth and refills at its rate, over all workers', () => {
  const memory = allocateRates('seed');
  const workers = [new RequestRates(memory), new RequestRates(memory)];
  const take = (seconds: number, times: number): number =>
    Array.from({ length: times }, (_, i) => workers[i % 2]?.take(7, 100, seconds)).filter(
      (wait) => wait === 0,
    ).length;
  expect(take(1_000, 500)).toBe(100 * burstSeconds);
  expect(take(1_001, 500)).toBe(100);
  expect(take(1_001.5, 500)).toBe(50);
  expect(workers[0]?.take(7, 100, 1_001.5)).toBeCloseTo(0.01);
  expect(take(1_100, 500)).toBe(100 * burstSeconds);
});

it('D7: with more devices than the table has places, none is limited for another', () => {
  const rates = new RequestRates(allocateRates('seed'));
  let limited = 0;
  for (let device = 1; device <= 600_000; device += 1) {
    if (rates.take(device * 7_919, 1, 1_000) !== 0) limited += 1;
  }
  expect(limited).toBe(0);
});

it('an address is an IPv4 address, however it is written, or the /64 of an IPv6 one', () => {
  expect(clientAddressOf(Buffer.from([192, 0, 2, 1]))).toBe('192.0.2.1');
  expect(clientAddressOf(Buffer.from('00000000000000000000ffffc0000201', 'hex'))).toBe('192.0.2.1');
  const [one, other] = ['20010db8000000010000000000000001', '20010db8000000010000ffff00000002'];
  expect(clientAddressOf(Buffer.from(one, 'hex'))).toBe(clientAddressOf(Buffer.from(other, 'hex')));
  expect(clientAddressOf(Buffer.alloc(0))).toBe('');
});

it('the clock is the same in all threads: that of the machine', () => {
  const [seconds, nanoseconds] = process.hrtime();
  expect(Math.abs(monotonicSeconds() - seconds - nanoseconds / 1e9)).toBeLessThan(0.1);
});

it('an address that a person gives is found however it is written, and what is none is refused', () => {
  expect(parseClientAddress('192.0.2.1')).toBe('192.0.2.1');
  expect(parseClientAddress('::ffff:192.0.2.1')).toBe('192.0.2.1');
  const site = clientAddressOf(Buffer.from('20010db8000000010000000000000001', 'hex'));
  for (const text of ['2001:db8:0:1::7', '2001:DB8:0:1:2:3:4:5', '2001:db8:0:1::/64']) {
    expect(parseClientAddress(text)).toBe(site);
  }
  expect(clientAddressText(site)).toBe('2001:db8:0:1::/64');
  expect(parseClientAddress('::1')).toBe('0000000000000000/64');
  for (const text of ['', 'here', '192.0.2', '192.0.2.1/64', 'fe80::1%eth0', '1::2::3', '/64'])
    expect(parseClientAddress(text), text).toBeUndefined();
});
