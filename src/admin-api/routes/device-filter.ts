import { type Static, Type } from 'typebox';
import { tagsMax } from '../../core/bounds.ts';
import type { Fleet } from '../../declarations/fleet.ts';
import type { DeviceFilter } from '../../domain/devices/device-query.ts';
import type { AdminApiConfig } from '../config.ts';
import { name, repeatedParameter, tag } from '../request/documents.ts';
import { parseTime, timeText } from '../request/times.ts';
import { activeSinceMs, stateParameter, withState } from './device-state.ts';

/** Which devices of a fleet: all of what is given must fit. */
export const deviceFilter = Type.Object({
  tag: repeatedParameter(tag, tagsMax, 'It has all of these tags.'),
  name_prefix: Type.Optional(name),
  enabled: Type.Optional(Type.Boolean()),
  state: stateParameter,
  seen_after: Type.Optional(timeText('Last seen then or later.')),
  seen_before: Type.Optional(timeText('Last seen earlier, or never.')),
});

/** @throws ApiError bad_request for a time that is none. */
export function deviceFilterOf(
  fleet: Fleet,
  given: Partial<Static<typeof deviceFilter>>,
  config: AdminApiConfig,
): DeviceFilter {
  const filter: DeviceFilter = {
    fleetId: fleet.fleetId,
    tags: given.tag,
    namePrefix: given.name_prefix,
    enabled: given.enabled,
    seenAfterMs: parseTime('seen_after', given.seen_after),
    seenBeforeMs: parseTime('seen_before', given.seen_before),
  };
  return given.state === undefined ? filter : withState(filter, given.state, activeSinceMs(fleet, config));
}
