import type { DeviceFilterDocument } from '../../contract/device.ts';
import type { Fleet } from '../../declarations/fleet.ts';
import type { DeviceFilter } from '../../domain/devices/device-query.ts';
import type { AdminApiConfig } from '../config.ts';
import { activeSinceMs, withState } from '../request/device-state.ts';
import { parseTime } from '../request/times.ts';

/** @throws ApiError bad_request for an invalid time. */
export function deviceFilterOf(
  fleet: Fleet,
  input: DeviceFilterDocument,
  config: AdminApiConfig,
): DeviceFilter {
  const filter: DeviceFilter = {
    fleetId: fleet.fleetId,
    tags: input.tag,
    idPrefix: input.id_prefix,
    namePrefix: input.name_prefix,
    enabled: input.enabled,
    seenAfterMs: parseTime('seen_after', input.seen_after),
    seenBeforeMs: parseTime('seen_before', input.seen_before),
    waitingBeforeMs: parseTime('waiting_before', input.waiting_before),
  };
  return input.state === undefined ? filter : withState(filter, input.state, activeSinceMs(fleet, config));
}
