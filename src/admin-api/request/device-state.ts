import type { DeviceDocument, DeviceState } from '../../contract/device.ts';
import { addressText } from '../../core/address.ts';
import type { Settings } from '../../core/config/settings.ts';
import { groupBy } from '../../core/groups.ts';
import { deviceIdOf, fleetIdOf } from '../../core/identity.ts';
import type { Fleet } from '../../declarations/fleet.ts';
import type { DeviceStatus } from '../../domain/devices/device.ts';
import { descriptionOf } from '../../domain/devices/device-fields.ts';
import type { DeviceFilter } from '../../domain/devices/device-query.ts';
import type { Shards } from '../../domain/shard.ts';
import { timeTextOf } from './times.ts';

export interface StateConfig {
  readonly settings: Settings<{ activeSeconds: number; stuckSeconds: number }>;
}

/** Returns how long a device counts as active after it was seen. */
export function activeMsOf(fleet: Fleet, config: StateConfig): number {
  return (fleet.activeSeconds ?? config.settings.current.activeSeconds) * 1_000;
}

/** Returns the earliest last-seen time with which a device counts as active. */
export function activeSinceMs(fleet: Fleet, config: StateConfig): number {
  return Date.now() - activeMsOf(fleet, config);
}

/** Returns the time before which a mail must have come to the head of its mailbox for that to count as stuck. */
export function stuckBeforeMs(config: StateConfig): number {
  return Date.now() - config.settings.current.stuckSeconds * 1_000;
}

function stateOf(isConnected: boolean, { lastSeenMs }: DeviceStatus, sinceMs: number): DeviceState {
  if (isConnected) return 'connected';
  return lastSeenMs !== undefined && lastSeenMs >= sinceMs ? 'active' : 'offline';
}

/** Adds a state to a filter. */
export function withState(filter: DeviceFilter, state: DeviceState, sinceMs: number): DeviceFilter {
  const { seenAfterMs, seenBeforeMs } = filter;
  if (state === 'connected') return { ...filter, connected: true };
  if (state === 'active') {
    return { ...filter, connected: false, seenAfterMs: Math.max(sinceMs, seenAfterMs ?? 0) };
  }
  const before = Math.min(sinceMs, seenBeforeMs ?? Number.MAX_SAFE_INTEGER);
  return { ...filter, connected: false, seenBeforeMs: before };
}

/** Knows the devices that this node refuses now; their ids are sorted. */
export interface CallingRefused {
  /** Those that it has refused since then: they call. */
  callingIds(fleetId: string, sinceMs: number): Promise<string[]>;
}

/** Adds to a filter that a device was active until that time or later, is offline now, and does not call in vain. */
export async function withSilence(
  filter: DeviceFilter,
  { silentAfterMs, sinceMs }: { silentAfterMs: number; sinceMs: number },
  refused: CallingRefused,
): Promise<DeviceFilter> {
  const activeMs = Date.now() - sinceMs;
  const offline = withState(filter, 'offline', sinceMs);
  return {
    ...offline,
    enabled: filter.enabled ?? true,
    seenAfterMs: Math.max(silentAfterMs - activeMs, filter.seenAfterMs ?? 0),
    notAmong: await refused.callingIds(filter.fleetId, sinceMs),
  };
}

function describeDevice(status: DeviceStatus, state: DeviceState): DeviceDocument {
  return {
    fleet_id: fleetIdOf(status.device),
    device_id: deviceIdOf(status.device),
    ...descriptionOf(status),
    enabled: status.enabled,
    created_at: timeTextOf(status.createdAtMs),
    old_secret_until: timeTextOf(status.oldSecretUntilMs),
    state,
    last_seen: timeTextOf(status.lastSeenMs),
    last_address: status.lastAddress === undefined ? null : addressText(status.lastAddress),
    mailbox_size: status.mailboxSize,
    waiting_since: timeTextOf(status.waitingSinceMs),
  };
}

interface StateParts {
  config: StateConfig;
  shards: Shards;
}

/** Finds the states of devices of one fleet. Asks each shard once which of its devices are connected. */
export async function statesOf(
  { config, shards }: StateParts,
  fleet: Fleet,
  devices: readonly DeviceStatus[],
): Promise<DeviceState[]> {
  const byShard = groupBy(devices, ({ device }) => shards.of(device));
  const connected = new Set<DeviceStatus>();
  await Promise.all(
    [...byShard].map(async ([shard, group]) => {
      const areConnected = await shard.streams.presence.areConnected(group.map(({ device }) => device));
      for (const [index, status] of group.entries()) if (areConnected[index]) connected.add(status);
    }),
  );
  const sinceMs = activeSinceMs(fleet, config);
  return devices.map((status) => stateOf(connected.has(status), status, sinceMs));
}

/** Describes devices of one fleet. */
export async function describeDevices(
  parts: StateParts,
  fleet: Fleet,
  devices: readonly DeviceStatus[],
): Promise<DeviceDocument[]> {
  const states = await statesOf(parts, fleet, devices);
  // There is a state for each
  return devices.map((status, index) => describeDevice(status, states[index] as DeviceState));
}
