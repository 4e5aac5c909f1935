import { type Static, Type } from 'typebox';
import { tagsMax } from '../../core/bounds.ts';
import type { Fleet } from '../../declarations/fleet.ts';
import type { DeviceFilter } from '../../domain/devices/device-query.ts';
import type { AdminApiConfig } from '../config.ts';
import { name, repeatedParameter, tag } from '../request/documents.ts';
import { parseTime, timeText } from '../request/times.ts';
import { activeSinceMs, stateParameter, withState } from './device-state.ts';

/** Filter of a fleet's devices; all parameters must match. */
export const deviceFilter = Type.Object({
  tag: repeatedParameter(tag, tagsMax, 'The device has all of these tags.'),
  name_prefix: Type.Optional(name),
  enabled: Type.Optional(Type.Boolean()),
  state: stateParameter,
  seen_after: Type.Optional(timeText('Last seen at that time or later.')),
  seen_before: Type.Optional(timeText('Last seen before that time, or never.')),
});

/** @throws ApiError bad_request for an invalid time. */
export function deviceFilterOf(
  fleet: Fleet,
  input: Partial<Static<typeof deviceFilter>>,
  config: AdminApiConfig,
): DeviceFilter {
  const filter: DeviceFilter = {
    fleetId: fleet.fleetId,
    tags: input.tag,
    namePrefix: input.name_prefix,
    enabled: input.enabled,
    seenAfterMs: parseTime('seen_after', input.seen_after),
    seenBeforeMs: parseTime('seen_before', input.seen_before),
  };
  return input.state === undefined ? filter : withState(filter, input.state, activeSinceMs(fleet, config));
}
