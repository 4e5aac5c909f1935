/** Of `src/device-api/limits/fleet-pulse.ts`. */

import { expect, it } from 'vitest';
import { FleetPulses, pulseKindOf } from '../../src/device-api/limits/fleet-pulse.ts';
import { pulseKinds } from '../../src/domain/pulse-kinds.ts';

const deviceOf = (fleetId: string) => ({ fleetId, pulse: undefined });

it('requests are counted by fleet and kind, taken once, and a fleet that falls quiet is forgotten and found again', () => {
  const pulses = new FleetPulses();
  const [one, other] = [deviceOf('FLEET001'), deviceOf('FLEET002')];
  const heartbeats = pulseKindOf('/v1/heartbeat');
  pulses.accepted(one, heartbeats);
  pulses.accepted(one, heartbeats);
  pulses.accepted(other, pulseKindOf('/v1/datapoint/:schema_name'));
  pulses.refused('FLEET001');
  expect(pulses.take()).toEqual([
    ['FLEET001', [2, 0, 0, 0, 0, 0, 1]],
    ['FLEET002', [0, 1, 0, 0, 0, 0, 0]],
  ]);
  expect(pulses.take()).toEqual([]);
  // A device that remembers a fleet that was forgotten is counted all the same.
  pulses.accepted(deviceOf('FLEET001'), heartbeats);
  pulses.accepted(one, heartbeats);
  expect(pulses.take()).toEqual([['FLEET001', [2, 0, 0, 0, 0, 0, 0]]]);
});

it('a kind is known by the path of its route', () => {
  const paths = ['/v1/heartbeat', '/v1/msg/:schema_name', '/v1/mailbox/next', '/v1/events', '/v1/claim'];
  const names = paths.map((path) => pulseKinds[pulseKindOf(path)]);
  expect(names).toEqual(['heartbeats', 'messages', 'mailbox', 'other', 'other']);
});

it('requests of more fleets than there is room for are counted nowhere, until there is', () => {
  const pulses = new FleetPulses();
  for (let number = 0; number < 4_096; number += 1) pulses.refused(String(number));
  const late = deviceOf('FLEET001');
  pulses.accepted(late, 0);
  expect(pulses.take()).toHaveLength(4_096);
  expect(pulses.take()).toEqual([]);
  pulses.accepted(late, 0);
  expect(pulses.take()).toEqual([['FLEET001', [1, 0, 0, 0, 0, 0, 0]]]);
});
