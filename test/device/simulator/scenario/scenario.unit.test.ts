import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deviceIdPattern, deviceSecretPattern } from '../../../../src/core/identity.ts';
import { plansOf } from '../../../../src/device/simulator/devices/plan.ts';
import {
  simulatedDeviceId,
  simulatedDeviceNumber,
  simulatedSecret,
} from '../../../../src/device/simulator/devices/simulated-identity.ts';
import { builtInProfiles } from '../../../../src/device/simulator/scenario/built-in-profiles.ts';
import { lengthText, parseDuration, parseShare } from '../../../../src/device/simulator/scenario/quantity.ts';
import {
  chaosEvents,
  profileOf,
  readMix,
  readScenario,
  scenarioOf,
} from '../../../../src/device/simulator/scenario/scenario.ts';

const mix = { lock: 0.6, thermostat: 0.4 };
const whole = { devices: 1_000, for: '10m', mix };

describe('a scenario', () => {
  it('has lengths of time and shares in words', () => {
    expect(['250ms', '90s', '10m', '1.5h', '7d'].map(parseDuration)).toEqual([
      250, 90_000, 600_000, 5_400_000, 604_800_000,
    ]);
    expect([600_000, 90_000, 250, 1_500].map(lengthText)).toEqual(['10m', '90s', '250ms', '1.5s']);
    expect(parseShare('40%')).toBe(0.4);
    for (const text of ['10', 'm', '-1s', '10 m', '1e3s', '10y'])
      expect(() => parseDuration(text)).toThrow('no length of time');
    for (const text of ['40', '101%', '-1%', '']) expect(() => parseShare(text)).toThrow('no share');
  });

  it('has a mix that is all of the fleet, of profiles that there are', () => {
    expect(readMix('lock=60%,thermostat=40%')).toEqual(mix);
    expect(readMix('tracker')).toEqual({ tracker: 1 });
    expect(() => scenarioOf({ ...whole, mix: { lock: 0.6 } })).toThrow(
      'The shares of the profiles are 60%, not 100%.',
    );
    expect(() => scenarioOf({ ...whole, mix: { lamp: 1 } })).toThrow(
      'There is no profile lamp: there are thermostat, lock',
    );
    const both = { sync: true, faults: { cut: 0.1 } };
    expect(() => scenarioOf({ ...whole, mix: { both: 1 }, profiles: { both } })).toThrow(
      'The profile both has "sync" and "faults"',
    );
  });

  it('gives each profile its share of the devices, whatever their number', () => {
    const { shares } = scenarioOf(whole);
    for (const devices of [10, 100, 1_234, 50_000]) {
      const locks = Array.from({ length: devices }, (_, device) => profileOf({ shares }, device)).filter(
        (one) => one === 0,
      );
      expect(Math.abs(locks.length / devices - 0.6)).toBeLessThan(0.11);
    }
  });

  it('is refused with a sentence where its file is not one', () => {
    expect(() => readScenario('{')).toThrow('The scenario is no JSON');
    expect(() => readScenario('{"devices":0,"for":"1m","mix":{}}')).toThrow(
      'The scenario is invalid: /devices',
    );
    expect(() => readScenario(JSON.stringify({ ...whole, event: [] }))).toThrow('The scenario is invalid');
    const unknown = {
      ...whole,
      mix: { own: 1 },
      profiles: { own: { datapoints: [{ schema: 'x', every: '1s' }] } },
    };
    expect(() => scenarioOf(readScenario(JSON.stringify(unknown)))).toThrow(
      'The scenario has no datapoint schema x',
    );
  });

  it('can be made of every profile that comes along, with events of every kind', () => {
    const names = Object.keys(builtInProfiles);
    const events = [{ at: '0s', event: 'ramp', over: '10s' }, ...chaosEvents(600_000, 3)];
    const document = {
      ...whole,
      mix: Object.fromEntries(names.map((name) => [name, 1 / names.length])),
      events,
    };
    const scenario = scenarioOf(readScenario(JSON.stringify(document)));
    expect(plansOf(scenario)).toHaveLength(names.length);
    expect(scenario.events.filter(({ event }) => event === 'kill')).toHaveLength(20);
    const times = scenario.events.map(({ at }) => parseDuration(at));
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(chaosEvents(600_000, 3)).toEqual(chaosEvents(600_000, 3));
  });
});

describe('a simulated device', () => {
  it('has an id that says its number (D1)', () => {
    fc.assert(
      fc.property(fc.nat({ max: 10_000_000 }), (device) => {
        expect(simulatedDeviceId(device)).toMatch(deviceIdPattern);
        expect(simulatedDeviceNumber(simulatedDeviceId(device))).toBe(device);
      }),
    );
    for (const id of ['PUMP000001', 'SIM', 'SIMabcdefg', 'SIM-000001'])
      expect(simulatedDeviceNumber(id)).toBe(-1);
  });

  it('has a secret of its own in each run', () => {
    expect(simulatedSecret('salt', 1)).toMatch(deviceSecretPattern);
    const secrets = ['salt', 'pepper'].flatMap((salt) =>
      [1, 2, 3].map((device) => simulatedSecret(salt, device)),
    );
    expect(new Set(secrets).size).toBe(6);
  });
});
