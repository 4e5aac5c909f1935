import { type Static, Type } from 'typebox';
import type { Config } from '../core/config.ts';
import { ApiError } from '../core/errors.ts';
import type { Fleet } from '../registry/fleet.ts';
import type { DeviceFilter } from '../shard/shard.ts';
import { activeSinceMs, stateParameter, withState } from './device-state.ts';
import { name, tag } from './documents.ts';

const isoTime = '^\\d{4}-\\d{2}-\\d{2}(T[0-9:.]{5,16}(Z|[+-]\\d{2}:\\d{2}))?$';

/** Which devices of a fleet: all of what is given must fit. */
export const deviceFilter = Type.Object({
  tag: Type.Optional(tag),
  name_prefix: Type.Optional(name),
  enabled: Type.Optional(Type.Boolean()),
  state: stateParameter,
  seen_after: Type.Optional(
    Type.String({ pattern: isoTime, description: 'ISO 8601: last seen then or later.' }),
  ),
  seen_before: Type.Optional(
    Type.String({ pattern: isoTime, description: 'ISO 8601: last seen earlier, or never.' }),
  ),
});

/** @throws ApiError bad_request for a time that is none. */
export function filterOf(
  fleet: Fleet,
  given: Partial<Static<typeof deviceFilter>>,
  config: Config,
): DeviceFilter {
  const filter: DeviceFilter = {
    fleetId: fleet.fleetId,
    tag: given.tag,
    namePrefix: given.name_prefix,
    enabled: given.enabled,
    seenAfterMs: timeOf('seen_after', given.seen_after),
    seenBeforeMs: timeOf('seen_before', given.seen_before),
  };
  return given.state === undefined ? filter : withState(filter, given.state, activeSinceMs(fleet, config));
}

function timeOf(field: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = Date.parse(text);
  if (ms >= 0) return ms;
  throw new ApiError('bad_request', { msg: `${field} is not a time.` });
}
