import type { DeviceFilterDocument } from '../../contract/device.ts';
import { ApiError } from '../../core/errors.ts';
import type { Fleet } from '../../declarations/fleet.ts';
import type { DeviceFilter } from '../../domain/devices/device-query.ts';
import {
  activeSinceMs,
  type CallingRefused,
  type StateConfig,
  withSilence,
  withState,
} from './device-state.ts';
import { parseTime } from './times.ts';

/** Holds what the conditions of a filter are read from. */
export interface FilterParts {
  config: StateConfig;
  /** The devices that this node refuses now; their ids are sorted. */
  refused: CallingRefused & {
    idsOf(fleetId: string, reason: NonNullable<DeviceFilterDocument['refused']>): Promise<string[]>;
  };
}

/**
 * Has no member that is undefined: a filter may be stored.
 * @throws ApiError bad_request for an invalid time, or conditions that exclude each other.
 */
export async function deviceFilterOf(
  fleet: Fleet,
  input: DeviceFilterDocument,
  { config, refused: refusedDevices }: FilterParts,
): Promise<DeviceFilter> {
  const { fleetId } = fleet;
  const { tag, id_prefix, name_prefix, enabled, state, seen_after, seen_before, silent_after } = input;
  const { waiting_before, refused } = input;
  const filter: DeviceFilter = {
    fleetId,
    ...(tag !== undefined && { tags: tag }),
    ...(id_prefix !== undefined && { idPrefix: id_prefix }),
    ...(name_prefix !== undefined && { namePrefix: name_prefix }),
    ...(enabled !== undefined && { enabled }),
    ...(seen_after !== undefined && { seenAfterMs: parseTime('seen_after', seen_after) }),
    ...(seen_before !== undefined && { seenBeforeMs: parseTime('seen_before', seen_before) }),
    ...(waiting_before !== undefined && { waitingBeforeMs: parseTime('waiting_before', waiting_before) }),
    ...(refused !== undefined && { among: await refusedDevices.idsOf(fleetId, refused) }),
  };
  const sinceMs = activeSinceMs(fleet, config);
  if (silent_after === undefined) return state === undefined ? filter : withState(filter, state, sinceMs);
  if (state !== undefined && state !== 'offline') {
    throw new ApiError('bad_request', { msg: 'A device that is silent is offline: omit `state`.' });
  }
  const silentAfterMs = parseTime('silent_after', silent_after);
  return withSilence(filter, { silentAfterMs, sinceMs }, refusedDevices);
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
