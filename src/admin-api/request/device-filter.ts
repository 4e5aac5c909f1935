import type { DeviceFilterDocument } from '../../contract/device.ts';
import { ApiError } from '../../core/errors.ts';
import type { Fleet } from '../../declarations/fleet.ts';
import type { DeviceFilter } from '../../domain/devices/device-query.ts';
import { activeSinceMs, type StateConfig, withState } from './device-state.ts';
import { parseTime } from './times.ts';

/** Has no member that is undefined: a filter may be stored. @throws ApiError bad_request for an invalid time. */
export function deviceFilterOf(fleet: Fleet, input: DeviceFilterDocument, config: StateConfig): DeviceFilter {
  const { tag, id_prefix, name_prefix, enabled, state, seen_after, seen_before, waiting_before } = input;
  const filter: DeviceFilter = {
    fleetId: fleet.fleetId,
    ...(tag !== undefined && { tags: tag }),
    ...(id_prefix !== undefined && { idPrefix: id_prefix }),
    ...(name_prefix !== undefined && { namePrefix: name_prefix }),
    ...(enabled !== undefined && { enabled }),
    ...(seen_after !== undefined && { seenAfterMs: parseTime('seen_after', seen_after) }),
    ...(seen_before !== undefined && { seenBeforeMs: parseTime('seen_before', seen_before) }),
    ...(waiting_before !== undefined && { waitingBeforeMs: parseTime('waiting_before', waiting_before) }),
  };
  return state === undefined ? filter : withState(filter, state, activeSinceMs(fleet, config));
}

/** A selection of devices in a body: ids, or what a list is filtered by. */
interface SelectorBody extends Omit<DeviceFilterDocument, 'tag'> {
  all?: true;
  tag?: string | string[];
}

/**
 * The filters of a selection that does not list ids; none of them: all. `path` is its place in the body.
 * @throws ApiError invalid_body.
 */
export function selectedFilter(
  { all, tag, ...rest }: SelectorBody,
  isListed: boolean,
  path: string,
): DeviceFilterDocument | undefined {
  const filter = { ...rest, ...(tag !== undefined && { tag: [...new Set([tag].flat())] }) };
  const ways = [isListed, all === true, Object.keys(filter).length > 0].filter((way) => way).length;
  if (ways !== 1) {
    const msg = 'must be ids, filters, or all: one of these';
    throw new ApiError('invalid_body', { errors: [{ path, msg }] });
  }
  return isListed ? undefined : filter;
}
